/* build.h: compiles plugins as their authors do, against the tree that was built. */
#ifndef TESTS_PLUGINS_BUILD_H
#define TESTS_PLUGINS_BUILD_H

#include <glib.h>

G_BEGIN_DECLS

/* pkg-config finds runner-1, and `runner` is the program that was built, for everything that runs from now
 * on. */
void build_init (void);

/* Runs the shell command; gives what it wrote and its exit status. (transfer full) */
char *run_shell (int *code, const char *format, ...) G_GNUC_PRINTF (2, 3);

/* Compiles the file @source to @so with the flags that pkg-config gives. Must succeed without a warning. */
void build_plugin (const char *source, const char *so, const char *flags);
/* The same for a text; gives the path DIR/NAME.so. (transfer full) */
char *build_text (const char *dir, const char *name, const char *text);

void write_text (const char *dir, const char *name, const char *text);
/* Copies the files of @from, which has no folders, into the new folder @to. */
void copy_files (const char *from, const char *to);

G_END_DECLS

#endif
