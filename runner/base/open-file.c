#include "config.h"

#include "runner/base/open-file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int
rn_open_regular (const char *path, guint64 *size)
{
  int fd = open (path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  struct stat info;
  int code = 0;

  if (fd < 0)
    {
      if (errno == ENXIO) /* a socket */
        errno = EINVAL;
      return -1;
    }
  if (fstat (fd, &info) != 0)
    code = errno;
  else if (!S_ISREG (info.st_mode))
    code = S_ISDIR (info.st_mode) ? EISDIR : EINVAL;
  if (code != 0)
    {
      close (fd);
      errno = code;
      return -1;
    }
  if (size != NULL)
    *size = (guint64) info.st_size;
  return fd;
}

char *
rn_read_all (int fd, gsize bytes, gsize *size)
{
  g_autofree char *text = g_try_malloc (bytes + 1);

  if (text == NULL)
    {
      errno = ENOMEM;
      return NULL;
    }
  *size = 0;
  for (gssize n = 1; n != 0 && *size < bytes;)
    {
      n = read (fd, text + *size, bytes - *size);
      if (n < 0 && errno != EINTR)
        return NULL;
      *size += (gsize) MAX (n, 0);
    }
  text[*size] = '\0';
  return g_steal_pointer (&text);
}

const char *
rn_open_problem (int code)
{
  switch (code)
    {
    case EISDIR:
    case EINVAL:
      return "not a regular file";
    default:
      return g_strerror (code);
    }
}

gboolean
rn_is_same_file (const char *a, const char *b)
{
  struct stat x, y;
  return stat (a, &x) == 0 && stat (b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}
