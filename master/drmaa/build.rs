//! Gives the library the name that programs are linked against, and keeps it loaded: a thread of a
//! session may still run when a program closes it with `dlclose(3)`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libdrmaa.so.1.0");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
