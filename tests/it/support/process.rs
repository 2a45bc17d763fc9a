//! The `gw` program: found or built once, run with an environment of its own.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
};

/// The program of this source tree.
#[derive(Debug)]
pub(crate) struct Program;

impl Program {
    /// Returns the path of the program.
    ///
    /// It stands beside the test program, in the folder of the profile. It is built first, once, because what stands
    /// there may be older than the source that is tested; where nothing has changed that takes no time. `GW_TEST_PROGRAM`
    /// names another one, a release build for instance, which is taken as it is.
    #[expect(clippy::disallowed_methods, reason = "who runs the tests says which program they are for")]
    pub(crate) fn path() -> &'static Path {
        static PATH: OnceLock<PathBuf> = OnceLock::new();
        PATH.get_or_init(|| {
            if let Some(program) = std::env::var_os("GW_TEST_PROGRAM") {
                return PathBuf::from(program);
            }
            let test = std::env::current_exe().unwrap();
            // target/PROFILE/deps/it-HASH
            let folder = test.parent().and_then(Path::parent).unwrap().to_owned();
            build(&folder);
            let program = folder.join(format!("gw{}", std::env::consts::EXE_SUFFIX));
            assert!(program.exists(), "no program at {}", program.display());
            program
        })
    }
}

fn build(folder: &Path) {
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "gw-cli", "--bin", "gw", "--profile", profile])
        .args(["--target-dir".as_ref(), folder.parent().unwrap().as_os_str()])
        .current_dir(workspace)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
}

/// Runs the program to its end in a folder, with an empty environment but for the variables.
pub(crate) fn run_gw(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(Program::path())
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}
