/* Trouble with files and with the clock, for one Python process, by LD_PRELOAD. See trouble.py.

   TROUBLE_IN       prefixes of the paths that count, with ':' between them
   TROUBLE_CALLS    kinds of calls that count, each with a ',' after it
   TROUBLE_FROM     number of the first such call that meets trouble, from 1
   TROUBLE_TO       number of the last one; 0 for all that follow
   TROUBLE_ERRNO    what they fail with; 0: they do not fail
   TROUBLE_HALF     1: a write puts down half of what it was given before it fails
   TROUBLE_DELAY    milliseconds that they take longer; -1: they never come back
   TROUBLE_LOG      file that gets a line for each call that counts, '!' before those that met trouble
   TROUBLE_CLOCK    1: the wall clock jumps back and forth
   Only a process whose name begins with "python" is troubled, and nothing that it starts.
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static int on, clock_on;
static char places[8][PATH_MAX];
static int place_count;
static char calls[512];
static long first = 1, last = 0, fails, half, delay;
static int log_fd = -1;
static atomic_long counted, ticks;

static long number(const char *name)
{
    const char *text = getenv(name);
    return text ? atol(text) : 0;
}

__attribute__((constructor)) static void begin(void)
{
    char name[32] = "";
    int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/comm", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        if (syscall(SYS_read, fd, name, sizeof name - 1) < 0)
            name[0] = 0;
        syscall(SYS_close, fd);
    }
    if (strncmp(name, "python", 6) != 0)
        return;
    unsetenv("LD_PRELOAD");
    clock_on = number("TROUBLE_CLOCK") == 1;
    const char *in = getenv("TROUBLE_IN"), *kinds = getenv("TROUBLE_CALLS"), *log = getenv("TROUBLE_LOG");
    if (!in || !kinds)
        return;
    snprintf(calls, sizeof calls, "%s", kinds);
    char all[8 * PATH_MAX];
    snprintf(all, sizeof all, "%s", in);
    for (char *part = strtok(all, ":"); part && place_count < 8; part = strtok(NULL, ":"))
        snprintf(places[place_count++], PATH_MAX, "%s", part);
    first = number("TROUBLE_FROM");
    last = number("TROUBLE_TO");
    fails = number("TROUBLE_ERRNO");
    half = number("TROUBLE_HALF");
    delay = number("TROUBLE_DELAY");
    if (log)
        log_fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log_fd >= 0) {  /* out of the way of what counts descriptors */
        int high = fcntl(log_fd, F_DUPFD_CLOEXEC, 500);
        if (high >= 0) {
            syscall(SYS_close, log_fd);
            log_fd = high;
        }
    }
    on = 1;
}

static int absolute(int folder, const char *path, char *whole)
{
    char base[PATH_MAX] = "";
    if (path && path[0] == '/') {
        snprintf(whole, PATH_MAX, "%s", path);
        return 1;
    }
    if (folder == AT_FDCWD) {
        if (!getcwd(base, sizeof base))
            return 0;
    } else {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t size = readlink(link, base, sizeof base - 1);
        if (size < 0)
            return 0;
        base[size] = 0;
    }
    if (!path || !path[0])
        snprintf(whole, PATH_MAX, "%s", base);
    else if ((size_t)snprintf(whole, PATH_MAX, "%s/%s", base, path) >= PATH_MAX)
        return 0;
    return 1;
}

/* Whether a call meets trouble; if so with errno set, and after its delay. */
static int meets(const char *kind, int folder, const char *path)
{
    if (!on)
        return 0;
    int saved = errno;
    char with[32], whole[PATH_MAX];
    snprintf(with, sizeof with, "%s,", kind);
    int ours = 0;
    if (strstr(calls, with) && absolute(folder, path, whole))
        for (int at = 0; at < place_count; at++)
            ours |= strncmp(whole, places[at], strlen(places[at])) == 0;
    if (!ours) {
        errno = saved;
        return 0;
    }
    long now = atomic_fetch_add(&counted, 1) + 1;
    int struck = first && now >= first && (!last || now <= last);
    if (log_fd >= 0) {
        char line[PATH_MAX + 64];
        int size = snprintf(line, sizeof line, "%s%s %s\n", struck ? "!" : "", kind, whole);
        syscall(SYS_write, log_fd, line, (size_t)size);
    }
    if (struck && delay < 0)
        for (;;)
            pause();
    if (struck && delay > 0) {
        struct timespec time = {delay / 1000, (delay % 1000) * 1000000};
        syscall(SYS_nanosleep, &time, NULL);
    }
    errno = struck && fails ? (int)fails : saved;
    return struck && fails;
}

static int meets_fd(const char *kind, int fd)
{
    return on && meets(kind, fd, NULL);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define CHANGES (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)

static const char *opening(int flags)
{
    return flags & CHANGES ? "open" : "look";
}

#define OPEN(name)                                                                     \
    int name(const char *path, int flags, ...)                                         \
    {                                                                                  \
        va_list more;                                                                  \
        va_start(more, flags);                                                         \
        mode_t mode = (mode_t)va_arg(more, int);                                       \
        va_end(more);                                                                  \
        return meets(opening(flags), AT_FDCWD, path) ? -1 : REAL(name)(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                   \
    int name(int folder, const char *path, int flags, ...)                             \
    {                                                                                  \
        va_list more;                                                                  \
        va_start(more, flags);                                                         \
        mode_t mode = (mode_t)va_arg(more, int);                                       \
        va_end(more);                                                                  \
        return meets(opening(flags), folder, path) ? -1 : REAL(name)(folder, path, flags, mode); \
    }
OPENAT(openat)
OPENAT(openat64)

ssize_t write(int fd, const void *data, size_t size)
{
    if (meets_fd("write", fd)) {
        int with = errno;
        if (half && size > 1)
            REAL(write)(fd, data, size / 2);
        errno = with;
        return -1;
    }
    return REAL(write)(fd, data, size);
}

ssize_t read(int fd, void *data, size_t size) { return meets_fd("read", fd) ? -1 : REAL(read)(fd, data, size); }
ssize_t pread64(int fd, void *data, size_t size, off64_t at)
{
    return meets_fd("read", fd) ? -1 : REAL(pread64)(fd, data, size, at);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at)
{
    return meets_fd("write", fd) ? -1 : REAL(pwrite64)(fd, data, size, at);
}
ssize_t writev(int fd, const struct iovec *parts, int count)
{
    return meets_fd("write", fd) ? -1 : REAL(writev)(fd, parts, count);
}
int fsync(int fd) { return meets_fd("sync", fd) ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return meets_fd("sync", fd) ? -1 : REAL(fdatasync)(fd); }
int ftruncate64(int fd, off64_t size) { return meets_fd("truncate", fd) ? -1 : REAL(ftruncate64)(fd, size); }
int flock(int fd, int how) { return meets_fd("lock", fd) ? -1 : REAL(flock)(fd, how); }
int fchmod(int fd, mode_t mode) { return meets_fd("change", fd) ? -1 : REAL(fchmod)(fd, mode); }
int chmod(const char *path, mode_t mode) { return meets("change", AT_FDCWD, path) ? -1 : REAL(chmod)(path, mode); }
int utimensat(int folder, const char *path, const struct timespec times[2], int flags)
{
    return meets("change", folder, path) ? -1 : REAL(utimensat)(folder, path, times, flags);
}
int futimens(int fd, const struct timespec times[2])
{
    return meets_fd("change", fd) ? -1 : REAL(futimens)(fd, times);
}
int rename(const char *from, const char *to) { return meets("rename", AT_FDCWD, to) ? -1 : REAL(rename)(from, to); }
int renameat(int a, const char *from, int b, const char *to)
{
    return meets("rename", b, to) ? -1 : REAL(renameat)(a, from, b, to);
}
int link(const char *from, const char *to) { return meets("link", AT_FDCWD, to) ? -1 : REAL(link)(from, to); }
int linkat(int a, const char *from, int b, const char *to, int flags)
{
    return meets("link", b, to) ? -1 : REAL(linkat)(a, from, b, to, flags);
}
int symlink(const char *to, const char *path) { return meets("link", AT_FDCWD, path) ? -1 : REAL(symlink)(to, path); }
int symlinkat(const char *to, int folder, const char *path)
{
    return meets("link", folder, path) ? -1 : REAL(symlinkat)(to, folder, path);
}
int mkdir(const char *path, mode_t mode) { return meets("mkdir", AT_FDCWD, path) ? -1 : REAL(mkdir)(path, mode); }
int mkdirat(int folder, const char *path, mode_t mode)
{
    return meets("mkdir", folder, path) ? -1 : REAL(mkdirat)(folder, path, mode);
}
int unlink(const char *path) { return meets("remove", AT_FDCWD, path) ? -1 : REAL(unlink)(path); }
int unlinkat(int folder, const char *path, int flags)
{
    return meets("remove", folder, path) ? -1 : REAL(unlinkat)(folder, path, flags);
}
int rmdir(const char *path) { return meets("remove", AT_FDCWD, path) ? -1 : REAL(rmdir)(path); }
ssize_t sendfile64(int to, int from, off64_t *at, size_t size)
{
    ssize_t (*real)(int, int, off64_t *, size_t) = dlsym(RTLD_NEXT, "sendfile64");
    return meets_fd("write", to) ? -1 : real(to, from, at, size);
}
ssize_t copy_file_range(int from, off64_t *a, int to, off64_t *b, size_t size, unsigned flags)
{
    return meets_fd("write", to) ? -1 : REAL(copy_file_range)(from, a, to, b, size, flags);
}

static time_t jump(void)
{
    static const time_t by[] = {0, 3600, -400 * 86400L, 3650 * 86400L, -5, 0, -7200, 86400};
    long tick = atomic_fetch_add(&ticks, 1);
    return by[(tick / 3) % (long)(sizeof by / sizeof *by)];
}

int clock_gettime(clockid_t which, struct timespec *time)
{
    int result = REAL(clock_gettime)(which, time);
    if (clock_on && !result && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE))
        time->tv_sec += jump();
    return result;
}

int gettimeofday(struct timeval *time, void *zone)
{
    int (*real)(struct timeval *, void *) = dlsym(RTLD_NEXT, "gettimeofday");
    int result = real(time, zone);
    if (clock_on && !result)
        time->tv_sec += jump();
    return result;
}

time_t time(time_t *where)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (where)
        *where = now.tv_sec;
    return now.tv_sec;
}
