rnincludedir = $(includedir)/runner-1/runner
rninclude_HEADERS = runner/batch.h runner/engine.h runner/export.h runner/hook.h runner/keys.h runner/node.h runner/tensor.h
nodist_rninclude_HEADERS = runner/version.h

pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = runner/runner-1.pc

librunner_internal_la_SOURCES += runner/run-config.c runner/run-config.h
