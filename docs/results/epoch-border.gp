# SPDX-License-Identifier: Apache-2.0
# gnuplot epoch-border.gp: what storage and trainer do where one epoch ends and the next begins.
set terminal svg size 860,560 font "sans-serif,12" background "#ffffff"
set output "epoch-border.svg"
set datafile separator ","
set multiplot layout 2,1
set xrange [0:20]
set yrange [0:600]
set y2range [0:4500]
set ytics nomirror
set y2tics 0,1500
set ylabel "read, MiB/s"
set y2label "trained, samples/s"
set style fill solid 0.25 noborder
set key outside top right horizontal
drained(phases) = strstrt(phases, "drain") ? 600 : 0
do for [name in "drained overlapping"] {
    set title name eq "drained" ? "each epoch is drained" : "--overlap-epochs" offset 0,-0.5
    set xlabel name eq "drained" ? "" : "seconds"
    plot "epoch-border-".name.".csv" skip 1 using 1:(drained(strcol(2))) with boxes lc "#999999" title "phase drain", \
         "" skip 1 using 1:($3 / 1048576) with steps lw 2 lc "#113366" title "read", \
         "" skip 1 using 1:4 axes x1y2 with steps lw 2 lc "#cc6600" title "trained"
}
