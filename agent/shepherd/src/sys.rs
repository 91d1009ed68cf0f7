//! System calls that nix does not offer safely, each wrapped so that callers need no `unsafe`.
//!
//! Nothing here decides anything. Every wrapper turns -1 into an error with errno.

mod bpf;

pub use bpf::{BpfInstruction, attach_device_program, load_device_program};
pub mod terminal;

use crate::trusted::TrustedFile;
use nix::errno::Errno;
use proto::launch::{BoundValue, Resource};
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Milliseconds of `CLOCK_BOOTTIME`, which goes on while the machine sleeps.
pub fn boot_ms() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the call to fill.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
    assert_eq!(status, 0, "CLOCK_BOOTTIME exists since Linux 2.6.39");
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

/// Now in the time zone of this process, as `MM/DD/YYYY HH:MM:SS`.
pub fn local_time() -> String {
    // SAFETY: the call accepts a null pointer.
    let now = unsafe { libc::time(std::ptr::null_mut()) };
    // SAFETY: a tm of zeros is a valid one.
    let mut time: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are valid, and no other thread changes TZ, as there is none.
    let converted = unsafe { libc::localtime_r(&raw const now, &raw mut time) };
    if converted.is_null() {
        return "-/-".to_owned();
    }
    let libc::tm {
        tm_mon,
        tm_mday,
        tm_year,
        tm_hour,
        tm_min,
        tm_sec,
        ..
    } = time;
    format!(
        "{:02}/{tm_mday:02}/{:04} {tm_hour:02}:{tm_min:02}:{tm_sec:02}",
        tm_mon + 1,
        tm_year + 1900
    )
}

/// Which side of a fork this is.
pub enum Fork {
    /// The new process.
    Child,
    /// The old process, with the pid of the new one.
    Parent(i32),
}

/// fork(2) in a process with a single thread.
///
/// # Errors
/// EAGAIN and ENOMEM.
pub fn fork() -> io::Result<Fork> {
    // SAFETY: launcher and shepherd have one thread, so the child may allocate and run any code.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(pid)),
    }
}

/// Returns whether an error number means that the whole system has no descriptors or memory left.
pub fn is_exhaustion(errno: i32) -> bool {
    [libc::EMFILE, libc::ENFILE, libc::ENOMEM].contains(&errno)
}

/// Ends this process at once, without destructors: the end of every forked child.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: _exit has no preconditions.
    unsafe { libc::_exit(code) }
}

/// What wait4(2) says about a child.
#[derive(Clone, Copy)]
pub struct ReapedChild {
    /// The child.
    pub pid: i32,
    /// The raw wait status.
    pub status: i32,
    /// What the child and all it waited for used.
    pub rusage: libc::rusage,
}

impl ReapedChild {
    /// A child that was sent SIGKILL and is not waited for.
    pub fn killed(pid: i32) -> Self {
        // SAFETY: rusage is plain integers, for which zero is valid.
        let rusage = unsafe { std::mem::zeroed() };
        ReapedChild {
            pid,
            status: libc::SIGKILL,
            rusage,
        }
    }
}

/// The answer of [`wait_any`].
pub enum Wait {
    /// A child ended and was reaped.
    Ended(Box<ReapedChild>),
    /// There are children, none has ended.
    StillRunning,
    /// There is no child at all: for a subreaper the proof that every descendant is gone.
    NoChild,
}

/// Reaps one child that has ended, without waiting.
pub fn wait_any() -> Wait {
    let mut status = 0;
    // SAFETY: rusage is plain integers, for which zero is valid.
    let mut rusage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live values of the right type.
    let pid = unsafe { libc::wait4(-1, &mut status, libc::WNOHANG, &mut rusage) };
    match pid {
        0 => Wait::StillRunning,
        -1 => Wait::NoChild,
        pid => Wait::Ended(Box::new(ReapedChild { pid, status, rusage })),
    }
}

/// Makes orphaned descendants children of this process.
///
/// # Errors
/// None is known; kernels before 3.4.
pub fn become_subreaper() -> io::Result<()> {
    prctl(libc::PR_SET_CHILD_SUBREAPER, 1)
}

/// Asks for `signal` when the parent dies. Tied to the parent's thread and cleared by a change of
/// uid.
///
/// # Errors
/// None for a valid signal.
pub fn set_parent_death_signal(signal: i32) -> io::Result<()> {
    prctl(libc::PR_SET_PDEATHSIG, signal as libc::c_ulong)
}

/// Sets `no_new_privs`.
///
/// # Errors
/// None is known.
pub fn set_no_new_privs() -> io::Result<()> {
    prctl(libc::PR_SET_NO_NEW_PRIVS, 1)
}

fn prctl(option: i32, value: libc::c_ulong) -> io::Result<()> {
    let zero: libc::c_ulong = 0;
    // SAFETY: the options used here take one integer and no pointer.
    check(unsafe { libc::prctl(option, value, zero, zero, zero) })
}

/// Marks every descriptor from `first` on as close-on-exec, in one call whatever the descriptor
/// limit is.
///
/// # Errors
/// ENOSYS and EINVAL before Linux 5.11.
pub fn close_on_exec_from(first: RawFd) -> io::Result<()> {
    close_range(first as u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC)
}

/// Closes every descriptor from 3 on except those in `keep`.
///
/// # Errors
/// ENOSYS before Linux 5.9.
pub fn close_all_except(keep: &mut [RawFd]) -> io::Result<()> {
    keep.sort_unstable();
    let mut first = 3u32;
    for &fd in keep.iter().filter(|&&fd| fd >= 3) {
        let fd = fd as u32;
        if fd > first {
            close_range(first, fd - 1, 0)?;
        }
        first = fd + 1;
    }
    close_range(first, u32::MAX, 0)
}

fn close_range(first: u32, last: u32, flags: libc::c_uint) -> io::Result<()> {
    // SAFETY: callers give up the descriptors in the range: they are in a forked child that owns
    // none of them.
    let status = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    if status == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Makes `fd` descriptor number `to`, open over execve.
///
/// # Errors
/// Those of dup2(2).
pub fn place(fd: RawFd, to: RawFd) -> io::Result<()> {
    if fd == to {
        // SAFETY: fcntl with F_SETFD takes integers.
        return check(unsafe { libc::fcntl(fd, libc::F_SETFD, 0) });
    }
    // SAFETY: dup2 takes integers; the caller owns number `to`.
    check(unsafe { libc::dup2(fd, to) })
}

/// What one read of a Unix stream socket gave.
pub struct SocketRead {
    /// Bytes; 0 at the end of the stream.
    pub count: usize,
    /// The descriptors that came along; none if the message had none, fewer than were sent if this
    /// process has no free number.
    pub descriptors: Option<Vec<OwnedFd>>,
}

/// recvmsg(2). nix gives no access to what arrived of a control message that was cut short; those
/// descriptors would stay open.
///
/// # Errors
/// Those of recvmsg(2), `WouldBlock` among them.
pub fn receive(socket: &impl AsRawFd, chunk: &mut [u8]) -> io::Result<SocketRead> {
    // Integers for the alignment of cmsg(3); room for 28 descriptors.
    let mut control = [0u64; 16];
    let mut part = libc::iovec {
        iov_base: chunk.as_mut_ptr().cast(),
        iov_len: chunk.len(),
    };
    // SAFETY: msghdr is pointers and integers, for which zero is valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&mut part, 1);
    (message.msg_control, message.msg_controllen) = (control.as_mut_ptr().cast(), size_of_val(&control) as _);
    // SAFETY: `message` points to live buffers of the lengths that it names.
    let count = unsafe { libc::recvmsg(socket.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC) };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    let mut descriptors = (message.msg_flags & libc::MSG_CTRUNC != 0).then(Vec::new);
    // SAFETY: the kernel has filled `message`, and `control` is alive.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(&message) };
    // SAFETY: the macros give null or a header inside `control`, which is aligned for it.
    while let Some(header) = unsafe { next.as_ref() } {
        if (header.cmsg_level, header.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
            descriptors.get_or_insert_default().extend(rights(header));
        }
        // SAFETY: as above; `next` is a header of this message.
        next = unsafe { libc::CMSG_NXTHDR(&message, next) };
    }
    Ok(SocketRead { count, descriptors })
}

/// The descriptors of a control message of SCM_RIGHTS that has just been received.
fn rights(header: &libc::cmsghdr) -> Vec<OwnedFd> {
    // SAFETY: CMSG_LEN only computes.
    let head = unsafe { libc::CMSG_LEN(0) } as usize;
    // SAFETY: CMSG_DATA only computes.
    let data = unsafe { libc::CMSG_DATA(header) }.cast::<RawFd>();
    let count = header.cmsg_len.saturating_sub(head) / size_of::<RawFd>();
    // SAFETY: cmsg_len says that `count` descriptors follow the header; they may be unaligned.
    (0..count)
        .map(|at| own(unsafe { data.wrapping_add(at).read_unaligned() }))
        .collect()
}

/// Takes ownership of a descriptor received from the kernel.
pub fn own(fd: RawFd) -> OwnedFd {
    // SAFETY: called once for each number that the kernel has just given to this process.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// A new duplicate with close-on-exec at number `at_least` or above.
///
/// # Errors
/// EMFILE.
pub fn duplicate_above(fd: RawFd, at_least: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: fcntl with F_DUPFD_CLOEXEC takes integers.
    let new = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, at_least) };
    if new < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(own(new))
    }
}

/// `setrlimit(2)` for one of our resources. A hard limit of infinity is none that was asked for:
/// the one in force stays.
///
/// # Errors
/// EPERM when the hard limit would be raised without the right to it.
pub fn set_limit(resource: Resource, soft: BoundValue, hard: BoundValue) -> Result<(), Errno> {
    let number = resource_number(resource);
    let hard = match hard {
        BoundValue::Finite(value) => value,
        BoundValue::Infinity => limit_in_force(number).1,
    };
    set_raw_limit(number, raw_bound(soft).min(hard), hard)
}

/// `setrlimit(2)` with the kernel's numbers.
///
/// # Errors
/// EPERM and EINVAL.
pub fn set_raw_limit(resource: u32, soft: u64, hard: u64) -> Result<(), Errno> {
    let limit = libc::rlimit {
        rlim_cur: soft,
        rlim_max: hard,
    };
    // SAFETY: `limit` is a valid rlimit.
    match unsafe { libc::setrlimit(resource, &limit) } {
        0 => Ok(()),
        _ => Err(Errno::last()),
    }
}

/// The soft and hard limit in force; both infinite if the kernel does not know the resource.
pub fn limit_in_force(resource: u32) -> (u64, u64) {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: `limit` is a valid rlimit for the call to fill.
    unsafe { libc::getrlimit(resource, &mut limit) };
    (limit.rlim_cur, limit.rlim_max)
}

/// The kernel's number of a resource.
pub fn resource_number(resource: Resource) -> u32 {
    match resource {
        Resource::Cpu => libc::RLIMIT_CPU,
        Resource::FileSize => libc::RLIMIT_FSIZE,
        Resource::Data => libc::RLIMIT_DATA,
        Resource::Stack => libc::RLIMIT_STACK,
        Resource::Core => libc::RLIMIT_CORE,
        Resource::ResidentSet => libc::RLIMIT_RSS,
        Resource::AddressSpace => libc::RLIMIT_AS,
        Resource::OpenFiles => libc::RLIMIT_NOFILE,
        Resource::Processes => libc::RLIMIT_NPROC,
        Resource::LockedMemory => libc::RLIMIT_MEMLOCK,
        Resource::FileLocks => libc::RLIMIT_LOCKS,
    }
}

fn raw_bound(bound: BoundValue) -> u64 {
    match bound {
        BoundValue::Finite(value) => value,
        BoundValue::Infinity => libc::RLIM_INFINITY,
    }
}

/// Sets the uid and gid with which files are opened; capabilities over files go with uid 0.
pub fn set_file_ids(uid: u32, gid: u32) {
    // SAFETY: setfsgid takes an integer and cannot fail for root.
    unsafe { libc::setfsgid(gid) };
    // SAFETY: setfsuid likewise; it comes second because it gives up the right to the first.
    unsafe { libc::setfsuid(uid) };
}

/// Lets one user read a file that nobody but its owner can read otherwise (acl(5)).
///
/// # Errors
/// Those of fsetxattr(2): ENOTSUP on a file system without access control lists.
pub fn let_user_read(file: &impl AsRawFd, uid: u32) -> io::Result<()> {
    const VERSION: u32 = 2;
    const NOBODY: u32 = u32::MAX;
    const READ: u16 = 4;
    const WRITE: u16 = 2;
    // Owner, the user, the group, the mask, all others: tag, permissions and id of each, as the
    // kernel has them.
    let entries = [
        (0x01, READ | WRITE, NOBODY),
        (0x02, READ, uid),
        (0x04, 0, NOBODY),
        (0x10, READ, NOBODY),
        (0x20, 0, NOBODY),
    ];
    let mut list = VERSION.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        list.extend_from_slice(&u16::to_le_bytes(tag));
        list.extend_from_slice(&u16::to_le_bytes(permissions));
        list.extend_from_slice(&u32::to_le_bytes(id));
    }
    let name = c"system.posix_acl_access".as_ptr();
    // SAFETY: the name is a C string, and `list` lives for the call with the length that is given.
    check(unsafe { libc::fsetxattr(file.as_raw_fd(), name, list.as_ptr().cast(), list.len(), 0) })
}

/// The uid with which files are opened now.
pub fn file_uid() -> u32 {
    // SAFETY: -1 is no uid, so the call changes nothing and returns the present value.
    unsafe { libc::setfsuid(u32::MAX) as u32 }
}

/// A program ready for execve(2): nothing is allocated between here and there, so that an
/// address-space limit may be in force.
pub struct Program {
    place: ProgramSource,
    argv: Pointers,
    envp: Pointers,
    /// The arguments of a shell that runs a file without a `#!` line: its own name, room for the
    /// path, the arguments.
    by_shell: Vec<*const libc::c_char>,
}

/// The shell that runs an executable file which the kernel cannot execute, as execvp(3) has it.
const SHELL: &CStr = c"/bin/sh";

/// Where the file of a program is.
enum ProgramSource {
    /// At the first of these paths that exists.
    Paths(Vec<CString>),
    /// Open.
    File(TrustedFile),
}

/// A null-terminated array of C strings and the strings it points to.
struct Pointers {
    _strings: Vec<CString>,
    array: Vec<*const libc::c_char>,
}

impl Pointers {
    fn new(strings: Vec<CString>) -> Self {
        let array = strings
            .iter()
            .map(|text| text.as_ptr())
            .chain([std::ptr::null()])
            .collect();
        Pointers {
            _strings: strings,
            array,
        }
    }
}

impl Program {
    /// A program with the paths it may be at, in the order they are tried.
    pub fn new(paths: Vec<CString>, argv: Vec<CString>, envp: Vec<CString>) -> Self {
        Program::at(ProgramSource::Paths(paths), argv, envp)
    }

    /// A program whose file was checked and is open.
    pub fn of_file(file: TrustedFile, argv: Vec<CString>, envp: Vec<CString>) -> Self {
        Program::at(ProgramSource::File(file), argv, envp)
    }

    fn at(place: ProgramSource, argv: Vec<CString>, envp: Vec<CString>) -> Self {
        let (argv, envp) = (Pointers::new(argv), Pointers::new(envp));
        let rest = argv.array.get(1..).unwrap_or_default();
        let end = std::ptr::null();
        let by_shell = [SHELL.as_ptr(), end]
            .into_iter()
            .chain(rest.iter().copied())
            .chain([end])
            .collect();
        Program {
            place,
            argv,
            envp,
            by_shell,
        }
    }

    /// Replaces this process by the program, and so returns only if that fails: with the error of
    /// the first path that exists, or with ENOENT if none does.
    #[allow(clippy::wildcard_enum_match_arm, reason = "the error numbers are the system's")]
    pub fn execute(&mut self) -> Errno {
        let paths = match &self.place {
            ProgramSource::Paths(paths) => paths,
            ProgramSource::File(file) => return self.execute_file(file),
        };
        let mut error = Errno::ENOENT;
        for path in paths {
            match self.execute_at(path) {
                Errno::ENOENT | Errno::ENOTDIR => {}
                Errno::ENOEXEC => {
                    self.by_shell[1] = path.as_ptr();
                    let (argv, envp) = (self.by_shell.as_ptr(), self.envp.array.as_ptr());
                    // SAFETY: the arrays end with null and point into strings that live as long as
                    // `self`.
                    unsafe { libc::execve(SHELL.as_ptr(), argv, envp) };
                    return Errno::last();
                }
                other => error = if error == Errno::ENOENT { other } else { error },
            }
        }
        error
    }

    fn execute_at(&self, path: &CStr) -> Errno {
        // SAFETY: path is a C string; both arrays end with null and point into strings owned by
        // `self`.
        unsafe { libc::execve(path.as_ptr(), self.argv.array.as_ptr(), self.envp.array.as_ptr()) };
        Errno::last()
    }

    /// A binary by its own descriptor. An interpreter opens a script by its name in the directory,
    /// whose descriptor it inherits.
    fn execute_file(&self, file: &TrustedFile) -> Errno {
        if !file.is_script() {
            return self.execute_in(file.file().as_raw_fd(), c"", libc::AT_EMPTY_PATH);
        }
        match self.keep_open() {
            Ok(()) => self.execute_in(file.folder().as_raw_fd(), file.name(), libc::AT_SYMLINK_NOFOLLOW),
            Err(errno) => errno,
        }
    }

    /// Lets what is executed next have the directory that the file is in, for an interpreter that
    /// opens the file.
    ///
    /// # Errors
    /// Errors of fcntl(2).
    pub fn keep_open(&self) -> Result<(), Errno> {
        match &self.place {
            ProgramSource::Paths(_) => Ok(()),
            ProgramSource::File(file) => {
                let folder = file.folder().as_raw_fd();
                place(folder, folder).map_err(|_| Errno::last())
            }
        }
    }

    fn execute_in(&self, fd: RawFd, name: &CStr, flags: libc::c_int) -> Errno {
        let (argv, envp) = (self.argv.array.as_ptr(), self.envp.array.as_ptr());
        // SAFETY: name is a C string; both arrays end with null and point into strings owned by
        // `self`.
        unsafe { libc::syscall(libc::SYS_execveat, fd, name.as_ptr(), argv, envp, flags) };
        Errno::last()
    }
}

/// A process that cannot be mistaken for a later one with the same pid.
pub fn open_pidfd(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_open takes a pid and flags.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(own(fd as RawFd))
    }
}

/// Sends a signal to the process behind a pidfd.
///
/// # Errors
/// ESRCH when it is gone, EPERM.
pub fn signal_pidfd(pidfd: &OwnedFd, signal: i32) -> io::Result<()> {
    send_signal(pidfd, signal, 0)
}

/// `PIDFD_SIGNAL_PROCESS_GROUP` of pidfd_send_signal(2).
const TO_PROCESS_GROUP: libc::c_uint = 1 << 2;

/// Sends a signal to the process group whose leader a pidfd was opened for, also when the leader is
/// gone.
///
/// # Errors
/// EINVAL before Linux 6.9, ESRCH when no member is left, EPERM.
pub fn signal_group(leader: &OwnedFd, signal: i32) -> io::Result<()> {
    send_signal(leader, signal, TO_PROCESS_GROUP)
}

fn send_signal(pidfd: &OwnedFd, signal: i32, flags: libc::c_uint) -> io::Result<()> {
    let info: *const libc::siginfo_t = std::ptr::null();
    // SAFETY: a null siginfo is allowed and means an ordinary signal.
    let status = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), signal, info, flags) };
    if status == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Ends this process after this many seconds, whatever it does, unless the kernel keeps it.
pub fn end_after(seconds: u32) {
    // SAFETY: alarm takes an integer; the default of SIGALRM ends the process.
    unsafe { libc::alarm(seconds) };
}

/// Sets the name by which ps(1) and `/proc/PID/comm` show this process.
pub fn set_name(name: &CStr) {
    let zero: libc::c_ulong = 0;
    // SAFETY: PR_SET_NAME reads at most 15 bytes of a C string.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr(), zero, zero, zero) };
}

/// Puts every signal's disposition back to the default, whatever this process was started with.
pub fn default_signals() {
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: SIG_DFL is a valid disposition; an error (SIGKILL, SIGSTOP) changes nothing.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Ignores SIGPIPE: writes to a closed socket fail instead.
pub fn ignore_broken_pipes() {
    // SAFETY: SIG_IGN is a valid disposition.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// Lets this process and what it forks run on these processors alone.
///
/// # Errors
/// EINVAL if this process may use none of them.
pub fn set_affinity(processors: &[u32]) -> io::Result<()> {
    const BITS: usize = libc::c_ulong::BITS as usize;
    let last = processors.iter().max().copied().unwrap_or(0) as usize;
    let mut mask: Vec<libc::c_ulong> = vec![0; last / BITS + 1];
    for processor in processors {
        let processor = *processor as usize;
        mask[processor / BITS] |= 1 << (processor % BITS);
    }
    // SAFETY: the kernel reads as many bytes of the mask as it is told, which are all of it; 0 is
    // this process.
    check(unsafe { libc::sched_setaffinity(0, std::mem::size_of_val(&*mask), mask.as_ptr().cast()) })
}

/// Sets this process's nice value.
///
/// # Errors
/// EACCES without the right to a lower one.
pub fn set_nice(nice: i32) -> io::Result<()> {
    // SAFETY: setpriority takes integers; 0 is this process.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) })
}

/// Lets this process run before all ordinary ones, whatever these do; what it forks is ordinary
/// again (sched(7)).
///
/// # Errors
/// EPERM without the right to it.
pub fn become_urgent() -> io::Result<()> {
    // SAFETY: sched_param is plain integers, for which zero is valid.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = 1;
    // SAFETY: `parameters` is a valid sched_param; 0 is this process.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, &parameters) })
}

/// Takes [`become_urgent`] back. Some may not say any more that what they fork is as urgent as they
/// are, which then stays unsaid.
///
/// # Errors
/// Those of sched_setscheduler(2).
pub fn become_ordinary() -> io::Result<()> {
    // SAFETY: sched_param is plain integers, for which zero is valid and the only priority of
    // ordinary processes.
    let parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: `parameters` is a valid sched_param; 0 is this process.
    let set = |policy| check(unsafe { libc::sched_setscheduler(0, policy, &parameters) });
    set(libc::SCHED_OTHER).or_else(|_| set(libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK))
}

/// This process's nice value.
pub fn nice() -> i32 {
    // SAFETY: getpriority takes integers; 0 is this process, which exists.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}

/// Sets the nice value of all processes of a group, with their threads.
///
/// # Errors
/// EACCES without the right to a lower one, ESRCH if the group is gone.
pub fn set_group_nice(group: i32, nice: i32) -> io::Result<()> {
    // SAFETY: setpriority takes integers.
    check(unsafe { libc::setpriority(libc::PRIO_PGRP, group as libc::id_t, nice) })
}

/// The process group of a process; none if it is gone.
pub fn process_group(pid: i32) -> Option<i32> {
    // SAFETY: getpgid takes an integer.
    let group = unsafe { libc::getpgid(pid) };
    (group > 0).then_some(group)
}

fn check(status: i32) -> io::Result<()> {
    if status < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
