//! The functions of `drmaa.h`: thin wrappers that turn C arguments into safe ones. All `unsafe` of
//! the library is here.
//!
//! What C programs hold are handles that look like pointers and are never followed. A panic ends a
//! call with an internal error.
//!
//! # Safety
//! The caller keeps the promises of C: a text that is not null ends with a null byte, a list of
//! texts ends with a null pointer, and a buffer that is not null has the length that is given.

#![allow(unsafe_code)]
#![allow(missing_docs, reason = "drmaa.h says what each function does")]
#![allow(clippy::missing_safety_doc, reason = "the module says it once for all functions")]

use crate::api::{Binding, SYSTEM, VERSION};
use crate::ended::StatusWord;
use crate::error::{DrmaaError, Errno};
use proto::text;
use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The most texts of one list. A longer one has no end.
const TEXTS_MAX: usize = 1 << 24;

/// The binding of a process.
struct ProcessBinding {
    pid: u32,
    binding: Binding,
}

static PROCESS: AtomicPtr<ProcessBinding> = AtomicPtr::new(ptr::null_mut());

/// The binding of this process. A child of fork(2) gets one of its own: the threads and locks of
/// its parent's are not there.
fn binding() -> &'static Binding {
    let pid = process::id();
    let mut present = PROCESS.load(Ordering::Acquire);
    loop {
        // SAFETY: the pointer is null, or comes from Box::into_raw below and is never freed.
        if let Some(process) = unsafe { present.as_ref() }.filter(|process| process.pid == pid) {
            return &process.binding;
        }
        let fresh = Box::into_raw(Box::new(ProcessBinding {
            pid,
            binding: Binding::new(),
        }));
        match PROCESS.compare_exchange(present, fresh, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => present = fresh,
            Err(other) => {
                // SAFETY: `fresh` was made above, and nobody else has seen it.
                drop(unsafe { Box::from_raw(fresh) });
                present = other;
            }
        }
    }
}

/// A buffer of the caller.
#[derive(Clone, Copy)]
struct OutText {
    start: *mut c_char,
    len: usize,
}

impl OutText {
    /// Stores as much of a text as there is room for, and a null byte.
    fn store(self, value: &str) {
        if self.start.is_null() || self.len == 0 {
            return;
        }
        let bytes = text::to_bytes(value);
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        let count = end.min(self.len - 1);
        // SAFETY: the caller promises `len` writable bytes, and `count` is less than that.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr().cast(), self.start, count) };
        // SAFETY: `count` is less than `len`.
        let last = unsafe { self.start.add(count) };
        // SAFETY: `last` is in the buffer.
        unsafe { last.write(0) };
    }
}

fn out(start: *mut c_char, len: usize) -> OutText {
    OutText { start, len }
}

/// A text of the caller; `None` for a null pointer.
fn read(pointer: *const c_char) -> Option<String> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: the caller promises that a text that is not null ends with a null byte.
    let found = unsafe { CStr::from_ptr(pointer) };
    Some(text::from_bytes(found.to_bytes()))
}

/// A text that must be there.
fn given(pointer: *const c_char) -> Result<String, DrmaaError> {
    read(pointer).ok_or_else(|| Errno::InvalidArgument.into())
}

/// A list of texts of the caller, which must be there.
fn read_list(list: *const *const c_char) -> Result<Vec<String>, DrmaaError> {
    present(list)?;
    let mut texts = Vec::new();
    while texts.len() < TEXTS_MAX {
        // SAFETY: the null pointer that ends the list has not come yet.
        let place = unsafe { list.add(texts.len()) };
        // SAFETY: see above.
        match read(unsafe { place.read() }) {
            Some(found) => texts.push(found),
            None => return Ok(texts),
        }
    }
    Err(Errno::InvalidArgument.into())
}

/// A pointer that must not be null.
fn present<T>(pointer: *const T) -> Result<(), DrmaaError> {
    match pointer.is_null() {
        true => Err(Errno::InvalidArgument.into()),
        false => Ok(()),
    }
}

/// Stores a value where the caller wants it, which may be nowhere.
fn store<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: the caller promises that a place that is not null takes a value.
        unsafe { place.write_unaligned(value) };
    }
}

/// The pointer for a handle.
fn opaque(handle: usize) -> *mut c_void {
    ptr::without_provenance_mut(handle)
}

fn handle(pointer: *const c_void) -> usize {
    pointer.addr()
}

/// Runs a call: the code that it returns, and the diagnosis.
fn call(diagnosis: OutText, work: impl FnOnce() -> Result<(), DrmaaError>) -> c_int {
    let outcome = catch_unwind(AssertUnwindSafe(work));
    match outcome {
        Ok(Ok(())) => Errno::Success.code(),
        Ok(Err(error)) => {
            diagnosis.store(&error.text);
            error.errno.code()
        }
        Err(_panic) => {
            diagnosis.store("internal error of libdrmaa: a message is on standard error");
            Errno::Internal.code()
        }
    }
}

/// A call without a diagnosis.
fn call_silently(work: impl FnOnce() -> Result<(), DrmaaError>) -> c_int {
    call(out(ptr::null_mut(), 0), work)
}

fn release(list: *mut c_void) {
    call_silently(|| {
        binding().release(handle(list));
        Ok(())
    });
}

fn next(list: *mut c_void, value: OutText) -> c_int {
    call_silently(|| {
        present(value.start)?;
        value.store(&binding().next(handle(list))?);
        Ok(())
    })
}

fn count(list: *mut c_void, size: *mut c_int) -> c_int {
    call_silently(|| {
        present(size)?;
        let count = binding().count(handle(list))?;
        store(size, c_int::try_from(count).unwrap_or(c_int::MAX));
        Ok(())
    })
}

/// One of the `drmaa_wif…` functions.
fn judge(place: *mut c_int, stat: c_int, diagnosis: OutText, what: fn(StatusWord) -> bool) -> c_int {
    call(diagnosis, || {
        present(place)?;
        store(place, c_int::from(what(StatusWord(stat))));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_init(contact: *const c_char, error: *mut c_char, error_len: usize) -> c_int {
    call(out(error, error_len), || {
        binding().init(&read(contact).unwrap_or_default())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_exit(error: *mut c_char, error_len: usize) -> c_int {
    call(out(error, error_len), || binding().exit())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_allocate_job_template(
    template: *mut *mut c_void,
    error: *mut c_char,
    error_len: usize,
) -> c_int {
    call(out(error, error_len), || {
        present(template)?;
        store(template, opaque(binding().allocate_template()?));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_delete_job_template(
    template: *mut c_void,
    error: *mut c_char,
    error_len: usize,
) -> c_int {
    call(out(error, error_len), || binding().delete_template(handle(template)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_set_attribute(
    template: *mut c_void,
    name: *const c_char,
    value: *const c_char,
    error: *mut c_char,
    error_len: usize,
) -> c_int {
    call(out(error, error_len), || {
        binding().set_attribute(handle(template), &given(name)?, &given(value)?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_get_attribute(
    template: *mut c_void,
    name: *const c_char,
    value: *mut c_char,
    value_len: usize,
    error: *mut c_char,
    error_len: usize,
) -> c_int {
    call(out(error, error_len), || {
        present(value)?;
        let found = binding().attribute(handle(template), &given(name)?)?;
        out(value, value_len).store(&found);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_set_vector_attribute(
    template: *mut c_void,
    name: *const c_char,
    values: *const *const c_char,
    error: *mut c_char,
    error_len: usize,
) -> c_int {
    call(out(error, error_len), || {
        binding().set_vector(handle(template), &given(name)?, read_list(values)?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_get_vector_attribute(
    template: *mut c_void,
    name: *const c_char,
    values: *mut *mut c_void,
    error: *mut c_char,
    error_len: usize,
) -> c_int {
    call(out(error, error_len), || {
        present(values)?;
        store(values, opaque(binding().vector(handle(template), &given(name)?)?));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_get_attribute_names(
    names: *mut *mut c_void,
    error: *mut c_char,
    error_len: usize,
) -> c_int {
    call(out(error, error_len), || {
        present(names)?;
        store(names, opaque(binding().attribute_names()?));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_get_vector_attribute_names(
    names: *mut *mut c_void,
    error: *mut c_char,
    error_len: usize,
) -> c_int {
    call(out(error, error_len), || {
        present(names)?;
        store(names, opaque(binding().vector_names()?));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_get_next_attr_name(list: *mut c_void, value: *mut c_char, len: usize) -> c_int {
    next(list, out(value, len))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_get_next_attr_value(list: *mut c_void, value: *mut c_char, len: usize) -> c_int {
    next(list, out(value, len))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_get_next_job_id(list: *mut c_void, value: *mut c_char, len: usize) -> c_int {
    next(list, out(value, len))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_get_num_attr_names(list: *mut c_void, size: *mut c_int) -> c_int {
    count(list, size)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_get_num_attr_values(list: *mut c_void, size: *mut c_int) -> c_int {
    count(list, size)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_get_num_job_ids(list: *mut c_void, size: *mut c_int) -> c_int {
    count(list, size)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_release_attr_names(list: *mut c_void) {
    release(list);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_release_attr_values(list: *mut c_void) {
    release(list);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_release_job_ids(list: *mut c_void) {
    release(list);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_run_job(
    job_id: *mut c_char,
    job_id_len: usize,
    template: *const c_void,
    error: *mut c_char,
    error_len: usize,
) -> c_int {
    call(out(error, error_len), || {
        let id = binding().run_job(handle(template))?;
        out(job_id, job_id_len).store(&id);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_run_bulk_jobs(
    job_ids: *mut *mut c_void,
    template: *const c_void,
    start: c_int,
    end: c_int,
    step: c_int,
    error: *mut c_char,
    error_len: usize,
) -> c_int {
    call(out(error, error_len), || {
        present(job_ids)?;
        store(job_ids, opaque(binding().run_bulk(handle(template), start, end, step)?));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_control(
    job_id: *const c_char,
    action: c_int,
    error: *mut c_char,
    error_len: usize,
) -> c_int {
    call(out(error, error_len), || binding().control(&given(job_id)?, action))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_synchronize(
    job_ids: *const *const c_char,
    timeout: c_long,
    dispose: c_int,
    error: *mut c_char,
    error_len: usize,
) -> c_int {
    call(out(error, error_len), || {
        binding().synchronize(&read_list(job_ids)?, timeout, dispose != 0)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_wait(
    job_id: *const c_char,
    job_id_out: *mut c_char,
    job_id_out_len: usize,
    stat: *mut c_int,
    timeout: c_long,
    usage: *mut *mut c_void,
    error: *mut c_char,
    error_len: usize,
) -> c_int {
    call(out(error, error_len), || {
        let outcome = binding().wait(&given(job_id)?, timeout)?;
        out(job_id_out, job_id_out_len).store(&outcome.id);
        store(stat, outcome.status.0);
        match outcome.usage {
            None => {
                store(usage, ptr::null_mut());
                return Err(Errno::NoUsage.into());
            }
            Some(list) if usage.is_null() => binding().release(list),
            Some(list) => store(usage, opaque(list)),
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_wifexited(
    exited: *mut c_int,
    stat: c_int,
    error: *mut c_char,
    error_len: usize,
) -> c_int {
    judge(exited, stat, out(error, error_len), StatusWord::has_exited)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_wexitstatus(
    exit_status: *mut c_int,
    stat: c_int,
    error: *mut c_char,
    error_len: usize,
) -> c_int {
    call(out(error, error_len), || {
        present(exit_status)?;
        store(exit_status, c_int::from(StatusWord(stat).exit_status()));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_wifsignaled(
    signaled: *mut c_int,
    stat: c_int,
    error: *mut c_char,
    error_len: usize,
) -> c_int {
    judge(signaled, stat, out(error, error_len), StatusWord::is_signaled)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_wtermsig(
    signal: *mut c_char,
    signal_len: usize,
    stat: c_int,
    error: *mut c_char,
    error_len: usize,
) -> c_int {
    call(out(error, error_len), || {
        present(signal)?;
        out(signal, signal_len).store(&StatusWord(stat).signal());
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_wcoredump(
    core_dumped: *mut c_int,
    stat: c_int,
    error: *mut c_char,
    error_len: usize,
) -> c_int {
    judge(core_dumped, stat, out(error, error_len), StatusWord::has_core)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_wifaborted(
    aborted: *mut c_int,
    stat: c_int,
    error: *mut c_char,
    error_len: usize,
) -> c_int {
    judge(aborted, stat, out(error, error_len), StatusWord::is_aborted)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_job_ps(
    job_id: *const c_char,
    state: *mut c_int,
    error: *mut c_char,
    error_len: usize,
) -> c_int {
    call(out(error, error_len), || {
        present(state)?;
        store(state, binding().job_ps(&given(job_id)?)? as c_int);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_strerror(code: c_int) -> *const c_char {
    Errno::of_code(code).map_or(ptr::null(), |errno| errno.text().as_ptr())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_get_contact(
    contact: *mut c_char,
    contact_len: usize,
    error: *mut c_char,
    error_len: usize,
) -> c_int {
    call(out(error, error_len), || {
        present(contact)?;
        out(contact, contact_len).store(&binding().contact());
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_version(
    major: *mut c_uint,
    minor: *mut c_uint,
    error: *mut c_char,
    error_len: usize,
) -> c_int {
    call(out(error, error_len), || {
        present(major)?;
        present(minor)?;
        store(major, VERSION.0);
        store(minor, VERSION.1);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_get_DRM_system(
    system: *mut c_char,
    system_len: usize,
    error: *mut c_char,
    error_len: usize,
) -> c_int {
    call(out(error, error_len), || {
        present(system)?;
        out(system, system_len).store(SYSTEM);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn drmaa_get_DRMAA_implementation(
    implementation: *mut c_char,
    implementation_len: usize,
    error: *mut c_char,
    error_len: usize,
) -> c_int {
    call(out(error, error_len), || {
        present(implementation)?;
        out(implementation, implementation_len).store(SYSTEM);
        Ok(())
    })
}
