// What qemu's user mode refuses: clone with CLONE_PARENT, by two forks instead of one.
//
// Preloaded into an emulated program whose parent is a subreaper (prctl), it has the same effect:
// what is forked between ends at once, and its child becomes one of the nearest subreaper's.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static long fork_for_parent(void) {
  const pid_t parent = getppid();
  pid_t child = -1;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  const pid_t between = fork();
  if (between == 0) {
    child = fork();
    if (child != 0) _exit(write(ends[1], &child, sizeof child) != sizeof child);
    close(ends[0]);
    close(ends[1]);
    while (getppid() != parent) usleep(1000);
    return 0;
  }
  close(ends[1]);
  if (between < 0 || read(ends[0], &child, sizeof child) != sizeof child) child = -1;
  close(ends[0]);
  waitpid(between, NULL, 0);
  return child;
}

long syscall(long number, ...) {
  long words[6];
  va_list rest;
  va_start(rest, number);
  for (int i = 0; i < 6; ++i) words[i] = va_arg(rest, long);
  va_end(rest);
  if (number == SYS_clone && (words[0] & CLONE_PARENT)) return fork_for_parent();
  long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  return real(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}
