# SPDX-License-Identifier: Apache-2.0
# gnuplot -e "folder='FOLDER'" pictures.gp: the tables of the experiments as pictures beside them.
set datafile separator ','
set datafile missing ''
set grid ytics lc rgb '#dddddd'
set border 3 lc rgb '#666666'
set tics nomirror
set key outside right top
set style data lines
blue = '#1f5fa8'; orange = '#d97b12'; green = '#2a8a4a'
table(name) = folder.'/'.name.'.csv'
# One node's rows, and the epoch's number where it grows.
of(node, column) = strcol(1) eq node ? column : NaN

set terminal svg size 900,600 font 'sans,11' background 'white'
pipelines = 'mxnet tensorflow caffe2'
title_of(pipeline) = pipeline eq 'mxnet' ? 'mxnet: one RecordIO file, each rank its range, shuffled anew each epoch' : \
    pipeline eq 'tensorflow' ? 'tensorflow: 64 shards, each rank reads any of them, shuffle buffer' : \
    'caffe2: one LMDB in key order, each rank every P-th record'

# Storage read throughput over time: a picture a memory size, a panel a pipeline, in it the sums over
# 1, 2 and 4 nodes (rows of one time are added up).
do for [size in 'large small'] {
    set output folder.'/storage-'.size.'.svg'
    set multiplot layout 3,1 title size eq 'large' ? \
        'Read from the NFS server by all nodes; page cache of a node larger than the set' : \
        'Read from the NFS server by all nodes; page cache of a node smaller than the set'
    set ylabel 'MB/s'
    set yrange [0:*]
    do for [pipeline in pipelines] {
        set title title_of(pipeline) offset 0,-0.8
        if (pipeline eq 'caffe2') { set xlabel 'seconds since the first epoch began' } else { unset xlabel }
        counts = size eq 'large' ? '1 2 4' : '1 2'
        plot for [i = 1:words(counts)] table(size.'-'.word(counts, i).'-'.pipeline) every ::1 using 2:5 \
            smooth frequency title word(counts, i).(i == 1 ? ' node' : ' nodes') lc rgb word(blue.' '.orange.' '.green, i) lw 1.5
    }
    unset multiplot
}

# LMDB and page cache: samples a second and waiting processors.
set output folder.'/lmdb.svg'
set multiplot layout 2,1 title 'LMDB through its map on a disk of 20 MB/s, 3 epochs'
unset xlabel
set ylabel 'samples/s'
set title 'samples a second' offset 0,-0.8
plot table('lmdb-large') using 2:4 title 'cache holds it' lc rgb blue lw 1.5, \
    table('lmdb-small') using 2:4 title 'cache does not' lc rgb orange lw 1.5
set xlabel 'seconds since the first epoch began'
set ylabel 'percent'
set title 'processors waiting for I/O' offset 0,-0.8
plot table('lmdb-large') using 2:9 title 'cache holds it' lc rgb blue lw 1.5, \
    table('lmdb-small') using 2:9 title 'cache does not' lc rgb orange lw 1.5
unset multiplot

# Gradients and data on one wire.
set output folder.'/gradients.svg'
set multiplot layout 2,1 title 'Two nodes train, from cold; node 1'
unset xlabel
set ylabel 'MB/s'
set title 'on the wire' offset 0,-0.8
plot table('gradients') using 2:(of('node1', $5)) title 'received' lc rgb blue lw 1.5, \
    table('gradients') using 2:(of('node1', $6)) title 'sent' lc rgb orange lw 1.5
set xlabel 'seconds since the first epoch began'
set title 'received - sent, and what NFS says it read' offset 0,-0.8
set yrange [*:*]
plot table('gradients') using 2:(of('node1', $5 - $6)) title 'received - sent' lc rgb blue lw 1.5, \
    table('gradients') using 2:(of('node1', $4)) title 'read from NFS' lc rgb orange lw 1.5
unset multiplot
