/* export.h: marks the symbols that librunner-1 offers to plugins. Everything else is hidden. */
#ifndef RUNNER_EXPORT_H
#define RUNNER_EXPORT_H

#ifdef __GNUC__
#define RN_API __attribute__ ((visibility ("default")))
#else
#define RN_API
#endif

#endif
