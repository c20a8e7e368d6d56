# SPDX-License-Identifier: Apache-2.0
# Ways to start it: tests/cli/packaging.sh checks these files.
EXTRA_DIST += .dockerignore packaging/Containerfile packaging/chroot.sh packaging/kubernetes/job.yaml packaging/kubernetes/mpijob.yaml \
	packaging/slurm/by-hand.sbatch packaging/slurm/one-job.sbatch
# Packages. Debian: ln -s packaging/debian . && dpkg-buildpackage -b.
EXTRA_DIST += packaging/rpm/iobench.spec packaging/spack/package.py packaging/sbom.py packaging/html.sh packaging/bare.sh packaging/cross.sh packaging/tutorial.sh docs/html.css \
	packaging/debian/changelog packaging/debian/control packaging/debian/copyright packaging/debian/iobench.install packaging/debian/iobench-cuda.install \
	packaging/debian/iobench-doc.doc-base packaging/debian/iobench-doc.install packaging/debian/rules packaging/debian/source/format

# README.md and docs/ for a browser.
#: html        all pages as HTML
html-local:
	$(AM_V_GEN)$(srcdir)/packaging/html.sh $(srcdir) html

# What is in this release and what it links: SPDX 2.3.
.PHONY: sbom
#: sbom        files and libraries as SPDX
sbom:
	$(AM_V_GEN)python3 $(srcdir)/packaging/sbom.py $(srcdir) >$(PACKAGE)-$(VERSION).spdx.json
CLEANFILES += $(PACKAGE)-$(VERSION).spdx.json

clean-local:
	rm -rf html

# The same tree gives the same tarball: times are those of the last change, or SOURCE_DATE_EPOCH.
am__tar = $${TAR-tar} --format=gnu --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rw,go=rX,a-s \
	--mtime=@$$(printenv SOURCE_DATE_EPOCH || git -C $(srcdir) log -1 --format=%ct 2>/dev/null || \
	stat -c %Y $(srcdir)/NEWS) -chf - "$$tardir"

# All pages with what they show, as in the tree, so that their links lead somewhere.
install-data-local:
	cd $(srcdir) && find README.md NEWS CONTRIBUTING.md docs -type f ! -name '*.mk' \
		\( -path 'docs/examples/*' -o ! -name '*.py' ! -name '*.sh' ! -name '*.gp' \) | \
		while read -r path; do \
			$(MKDIR_P) "$(DESTDIR)$(docdir)/$$(dirname "$$path")" && \
			$(INSTALL_DATA) "$$path" "$(DESTDIR)$(docdir)/$$path" || exit 1; done

uninstall-local:
	rm -rf "$(DESTDIR)$(docdir)"

# After make install: it starts, and has its manual and its documents.
installcheck-local:
	$(DESTDIR)$(bindir)/iobench --version
	test -f $(DESTDIR)$(mandir)/man1/iobench-run.1
	test -f $(DESTDIR)$(docdir)/docs/README.md
