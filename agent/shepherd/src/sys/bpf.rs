//! bpf(2), as far as programs of control groups need it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// One instruction of a program: the operation, two registers of four bits, a distance in
/// instructions or bytes, and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct BpfInstruction {
    operation: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// Operations, from linux/bpf.h and linux/bpf_common.h.
const LOAD_WORD: u8 = 0x61;
const COPY: u8 = 0xbf;
const SET: u8 = 0xb7;
const AND: u8 = 0x57;
const SHIFT_RIGHT: u8 = 0x77;
const SKIP: u8 = 0x05;
const SKIP_UNLESS_EQUAL: u8 = 0x55;
const SKIP_IF_ANY: u8 = 0x45;
const EXIT: u8 = 0x95;

impl BpfInstruction {
    /// Loads 32 bits at an offset from where another register points.
    pub fn load(to: u8, from: u8, offset: i16) -> Self {
        Self::new(LOAD_WORD, to, from, offset, 0)
    }

    /// Copies a register.
    pub fn copy(to: u8, from: u8) -> Self {
        Self::new(COPY, to, from, 0, 0)
    }

    /// Sets a register.
    pub fn set(register: u8, value: i32) -> Self {
        Self::new(SET, register, 0, 0, value)
    }

    /// Keeps some bits of a register.
    pub fn and(register: u8, bits: i32) -> Self {
        Self::new(AND, register, 0, 0, bits)
    }

    /// Shifts a register.
    pub fn shift_right(register: u8, bits: i32) -> Self {
        Self::new(SHIFT_RIGHT, register, 0, 0, bits)
    }

    /// Skips instructions.
    pub fn skip(count: i16) -> Self {
        Self::new(SKIP, 0, 0, count, 0)
    }

    /// Skips instructions unless a register has this value. Values of device numbers are below
    /// 2^31: the kernel extends the sign.
    pub fn skip_unless_equal(register: u8, value: u32, count: i16) -> Self {
        Self::new(SKIP_UNLESS_EQUAL, register, 0, count, value.cast_signed())
    }

    /// Skips instructions if a register has one of these bits.
    pub fn skip_if_any(register: u8, bits: u32, count: i16) -> Self {
        Self::new(SKIP_IF_ANY, register, 0, count, bits.cast_signed())
    }

    /// Ends the program with register 0 as its answer.
    pub fn exit() -> Self {
        Self::new(EXIT, 0, 0, 0, 0)
    }

    fn new(operation: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Self {
        // Little-endian machines have the target in the lower half.
        let registers = if cfg!(target_endian = "little") {
            from << 4 | to
        } else {
            to << 4 | from
        };
        BpfInstruction {
            operation,
            registers,
            offset,
            immediate,
        }
    }

    /// Carries the instruction out, for tests: how many instructions are skipped, or `None` at the
    /// end.
    #[cfg(test)]
    pub fn step(self, registers: &mut [u64; 6], question: &[u32; 3]) -> Option<usize> {
        let [to, from] = match cfg!(target_endian = "little") {
            true => [self.registers & 15, self.registers >> 4],
            false => [self.registers >> 4, self.registers & 15],
        };
        let (to, from) = (usize::from(to), usize::from(from));
        let number = i64::from(self.immediate) as u64;
        let skipped = usize::try_from(self.offset).expect("programs only go forward");
        match self.operation {
            LOAD_WORD => registers[to] = u64::from(question[skipped / 4]),
            COPY => registers[to] = registers[from],
            SET => registers[to] = number,
            AND => registers[to] &= number,
            SHIFT_RIGHT => registers[to] >>= number,
            SKIP => return Some(skipped),
            SKIP_UNLESS_EQUAL if registers[to] != number => return Some(skipped),
            SKIP_IF_ANY if registers[to] & number != 0 => return Some(skipped),
            SKIP_UNLESS_EQUAL | SKIP_IF_ANY => {}
            EXIT => return None,
            other => panic!("{other:#x} is not an operation of ours"),
        }
        Some(0)
    }
}

/// Commands and kinds, from linux/bpf.h.
const LOAD_PROGRAM: libc::c_long = 5;
const ATTACH_PROGRAM: libc::c_long = 8;
const DEVICE_PROGRAM: u32 = 15;
const AT_DEVICES: u32 = 6;
/// A group may have several programs: a service manager may have attached one above.
const ALLOW_SEVERAL: u32 = 2;

/// The attributes of a load (`union bpf_attr` of linux/bpf.h).
#[repr(C)]
struct LoadAttributes {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

/// The attributes of an attachment.
#[repr(C)]
struct AttachAttributes {
    target: u32,
    program: u32,
    place: u32,
    flags: u32,
}

/// Loads a program that answers whether a device may be used.
///
/// # Errors
/// The kernel does not have such programs, this process may not load one, or the kernel takes the
/// program for unsafe.
pub fn load_device_program(program: &[BpfInstruction]) -> io::Result<OwnedFd> {
    let attributes = LoadAttributes {
        kind: DEVICE_PROGRAM,
        count: u32::try_from(program.len()).map_err(io::Error::other)?,
        instructions: program.as_ptr() as u64,
        license: c"".as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
    };
    let size = std::mem::size_of::<LoadAttributes>();
    // SAFETY: the attributes have the layout and size that the call is told, and both pointers in
    // them outlive it.
    let status = unsafe { libc::syscall(libc::SYS_bpf, LOAD_PROGRAM, &raw const attributes, size) };
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    let fd = i32::try_from(status).map_err(io::Error::other)?;
    Ok(super::own(fd))
}

/// Attaches a program to a control group. It stays there until the group is removed.
///
/// # Errors
/// The directory is not a group of the second version, or the kernel does not have such programs.
pub fn attach_device_program(group: &impl AsRawFd, program: &OwnedFd) -> io::Result<()> {
    let number = |fd: i32| u32::try_from(fd).expect("an open descriptor is not negative");
    let attributes = AttachAttributes {
        target: number(group.as_raw_fd()),
        program: number(program.as_raw_fd()),
        place: AT_DEVICES,
        flags: ALLOW_SEVERAL,
    };
    let size = std::mem::size_of::<AttachAttributes>();
    // SAFETY: the attributes have the layout and size that the call is told.
    let status = unsafe { libc::syscall(libc::SYS_bpf, ATTACH_PROGRAM, &raw const attributes, size) };
    if status < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
