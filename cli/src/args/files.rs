//! The files of the commands that read objects.

use std::path::PathBuf;

use clap::Args as Group;

/// Where a command finds objects.
#[derive(Debug, Group)]
pub(crate) struct FileArgs {
    /// A file, a folder or an archive (.tar, .tar.gz or .zip) of objects; `-` is standard input. Repeatable
    #[arg(short, long = "filename", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Read the folders in a folder, too
    #[arg(short = 'R', long, requires = "files")]
    pub(crate) recursive: bool,
}
