//! Why a file is not trusted.

use nix::errno::Errno;
use std::ffi::NulError;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// A program or a text is not trusted. The text has its path, the fault and the remedy.
#[derive(Debug)]
pub struct UntrustedFile {
    /// The path as it was asked for.
    pub(super) path: PathBuf,
    /// The program of its `#!` line, if that is at fault.
    pub(super) interpreter: Option<PathBuf>,
    /// The fault of the file or of its interpreter.
    pub(super) fault: TrustFault,
}

/// What is wrong with a file, or with a directory or link on the way to it.
#[derive(Debug)]
pub(super) enum TrustFault {
    Relative,
    /// The system does not show a file or directory on the way.
    Hidden {
        name: PathBuf,
        errno: Errno,
    },
    /// The system says nothing about an open file, or there are too many links.
    System(Errno),
    Name(NulError),
    Unreadable(io::Error),
    IsDirectory,
    NotADirectory(PathBuf),
    NotRegular,
    Owner {
        name: PathBuf,
        uid: u32,
        owners: Vec<u32>,
    },
    /// Others can write a directory on the way.
    WritableDirectory(PathBuf),
    /// Others can write the file.
    Writable,
    /// Others can make names in the directory of the file.
    SharedDirectory,
}

impl fmt::Display for UntrustedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        if let Some(interpreter) = &self.interpreter {
            write!(f, "its interpreter: {}: ", interpreter.display())?;
        }
        write!(f, "{}", self.fault)
    }
}

impl std::error::Error for UntrustedFile {}

impl fmt::Display for TrustFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrustFault::Relative => f.write_str("is not an absolute path"),
            TrustFault::Hidden { name, errno } => write!(f, "{}: {errno}", name.display()),
            TrustFault::System(errno) => write!(f, "{errno}"),
            TrustFault::Name(error) => write!(f, "{error}"),
            TrustFault::Unreadable(error) => write!(f, "{error}"),
            TrustFault::IsDirectory => f.write_str("is a directory"),
            TrustFault::NotADirectory(name) => write!(f, "{} is no directory", name.display()),
            TrustFault::NotRegular => f.write_str("is no regular file"),
            TrustFault::Owner { name, uid, owners } => {
                let owner = |uid: &u32| {
                    if *uid == 0 {
                        "root".to_owned()
                    } else {
                        format!("uid {uid}")
                    }
                };
                let owners: Vec<String> = owners.iter().map(owner).collect();
                write!(
                    f,
                    "{} belongs to uid {uid}, not to {}",
                    name.display(),
                    owners.join(" or ")
                )
            }
            TrustFault::WritableDirectory(name) => write!(
                f,
                "others can write the directory {}; remove the group's and others' write permission",
                name.display()
            ),
            TrustFault::Writable => f.write_str("others can write it; remove the group's and others' write permission"),
            TrustFault::SharedDirectory => f.write_str(
                "others can make files in its directory; put it into a directory that only its owner writes",
            ),
        }
    }
}
