//! The program `gridwright`; everything is in the library.

fn main() -> std::process::ExitCode {
    gridwright_cli::main()
}
