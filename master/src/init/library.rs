//! The DRMAA library of a cell: `lib/ARCH/libdrmaa.so` and `include/drmaa.h`, where programs that
//! were made for Grid Engine look for them.

use super::InitError;
use super::tree::{make_directory, relink, write};
use proto::host::arch;
use std::path::{Path, PathBuf};

/// The header.
const HEADER: &str = include_str!("../../drmaa/include/drmaa.h");

/// The description for pkg-config(1).
const PKG_CONFIG: &str = include_str!("../../drmaa/include/drmaa.pc.in");

/// The names of the library: the one that programs are linked with, and the one that they load.
const NAMES: [&str; 2] = ["libdrmaa.so", "libdrmaa.so.1.0"];

/// Where the package has it.
const PACKAGED: &str = "/usr/lib/gridwright/libdrmaa.so.1.0";

/// Links the library into the cell, if this host has it.
pub(super) fn link_library(dir: &Path) -> Result<(), InitError> {
    let Some(library) = find() else { return Ok(()) };
    let (lib, include) = (dir.join("lib"), dir.join("include"));
    let of_arch = lib.join(arch());
    let pkg_config = of_arch.join("pkgconfig");
    for folder in [&lib, &of_arch, &pkg_config, &include] {
        make_directory(folder, 0o755)?;
    }
    for name in NAMES {
        relink(&of_arch.join(name), &library)?;
    }
    write(&include.join("drmaa.h"), HEADER, 0o644)?;
    let described = PKG_CONFIG
        .replace("@LIBDIR@", &of_arch.display().to_string())
        .replace("@INCLUDEDIR@", &include.display().to_string());
    write(&pkg_config.join("drmaa.pc"), &described, 0o644)
}

/// The library beside this program, else the one of the package.
fn find() -> Option<PathBuf> {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name(NAMES[0]));
    let candidates = [beside, Some(PathBuf::from(PACKAGED))];
    candidates.into_iter().flatten().find(|file| file.is_file())
}
