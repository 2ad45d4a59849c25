/* bench-child.c: the program runs itself: what one process measures, another one's memory cannot disturb. */
#include "config.h"

#include "runner/cli/bench-table.h"

#include "runner/base/signals.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long a signal may wait; and how seldom this process wakes up beside the one that measures. */
#define POLL_MS 200

void
rn_bench_child_clear (RnBenchChild *child)
{
  if (child->out != NULL)
    g_string_free (child->out, TRUE);
  if (child->err != NULL)
    g_string_free (child->err, TRUE);
  *child = (RnBenchChild){ 0 };
}

/* FALSE: the end of it. */
static gboolean
read_some (int fd, GString *text)
{
  char buffer[4096];
  ssize_t n = read (fd, buffer, sizeof buffer);

  if (n > 0)
    g_string_append_len (text, buffer, n);
  return n > 0 || (n < 0 && errno == EINTR);
}

/* Until both pipes are closed. The first signal that comes is passed on. */
static void
read_all (GPid pid, int out, int err, RnBenchChild *child)
{
  struct pollfd fds[] = { { .fd = out, .events = POLLIN }, { .fd = err, .events = POLLIN } };
  GString *texts[] = { child->out, child->err };

  while (fds[0].fd >= 0 || fds[1].fd >= 0)
    {
      if (poll (fds, G_N_ELEMENTS (fds), POLL_MS) > 0)
        for (gsize i = 0; i < G_N_ELEMENTS (fds); i++)
          if (fds[i].fd >= 0 && fds[i].revents != 0 && !read_some (fds[i].fd, texts[i]))
            fds[i].fd = -1;
      if (child->signal == 0 && (child->signal = rn_signals_pending ()) != 0)
        kill (pid, SIGTERM);
    }
}

gboolean
rn_bench_child_run (char *const *arguments, RnBenchChild *child, GError **error)
{
  g_autofree char *program = g_file_read_link ("/proc/self/exe", error);
  g_autoptr (GPtrArray) argv = g_ptr_array_new ();
  GPid pid;
  int out, err, status = 0;

  if (program == NULL)
    return FALSE;
  g_ptr_array_add (argv, program);
  for (int i = 0; arguments[i] != NULL; i++)
    g_ptr_array_add (argv, arguments[i]);
  g_ptr_array_add (argv, NULL);
  if (!g_spawn_async_with_pipes (NULL, (char **) argv->pdata, NULL, G_SPAWN_DO_NOT_REAP_CHILD, NULL, NULL,
                                 &pid, NULL, &out, &err, error))
    return FALSE;
  *child = (RnBenchChild){ .out = g_string_new (NULL), .err = g_string_new (NULL) };
  read_all (pid, out, err, child);
  close (out);
  close (err);
  while (waitpid (pid, &status, 0) < 0 && errno == EINTR)
    ;
  g_spawn_close_pid (pid);
  child->code = WIFEXITED (status) ? WEXITSTATUS (status) : 128 + WTERMSIG (status);
  return TRUE;
}
