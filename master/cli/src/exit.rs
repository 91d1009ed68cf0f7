//! Exit codes with a name. Codes of refusals come from [`proto::diagnostic::Code::exit_code`].

/// Everything asked for was done.
pub const OK: u8 = 0;
/// Something was refused or nothing matched where a match was asked for.
pub const FAILED: u8 = 1;
/// The command line is wrong.
pub const USAGE: u8 = 2;
/// A job submission verifier that is named on the command line cannot be run.
pub const BAD_VERIFIER: u8 = 3;
/// A script cannot be read or is empty.
pub const SCRIPT_UNREADABLE: u8 = 4;
/// An option that this command does not have.
pub const UNKNOWN_OPTION: u8 = 5;
/// A value on the command line does not parse.
pub const BAD_VALUE: u8 = 7;
/// The script named on the command line does not exist.
pub const SCRIPT_MISSING: u8 = 14;
