//! Files of objects, as kubectl prints them, also in folders and archives.
//!
//! **Invariant:** the bytes of all files of a command together, unpacked, are bounded, and one file is in memory at a time.

use std::{
    fs::{self, File},
    io::{self, BufReader, Cursor, Read, Write},
    path::{Path, PathBuf},
    rc::Rc,
};

use agent_fake::manifest::{Document, ManifestError};
use flate2::read::MultiGzDecoder;
use server_core::wording::count;
use zip::{ZipArchive, result::ZipError};

mod bounded;

use bounded::{Bounded, Left};

use crate::{
    args::FileArgs,
    exit::{Exit, Failure},
    streams::Io,
    table::one_line,
};

/// The first bytes of a gzip file, and of a zip archive with and without members.
const GZIP: &[u8] = b"\x1f\x8b";
const ZIP: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];
/// The word in the header of a tar archive, and its position.
const TAR: &[u8] = b"ustar";
const TAR_AT: usize = 257;
/// The extensions of files that folders and archives are read for.
const EXTENSIONS: [&str; 3] = ["json", "yaml", "yml"];
/// The maximum number of skipped files that are named.
const SKIPPED_MAX: usize = 5;

/// The remedy for input that is no list of objects.
pub(crate) const KUBECTL: &str = "use the output of: kubectl get rs,pods -o json";

/// What becomes of each object.
type Take<'a> = &'a mut dyn FnMut(Document) -> Result<(), Failure>;

/// The files of a command while they are read.
struct Reader<'a> {
    take: Take<'a>,
    stderr: &'a mut dyn Write,
    left: Left,
    objects: usize,
    /// The files of folders and archives that hold no objects, and why.
    skipped: Vec<String>,
    /// Whether there are folders that are not read.
    has_folders: bool,
}

/// Passes on all objects of all files in order; `-` is standard input.
pub(crate) fn read(args: &FileArgs, io: &mut Io<'_>, take: Take<'_>) -> Result<(), Failure> {
    let mut reader = Reader {
        take,
        stderr: io.stderr,
        left: bounded::all(),
        objects: 0,
        skipped: Vec::new(),
        has_folders: false,
    };
    if args.files.is_empty() {
        let failure = Failure::new(Exit::Usage, "no file is named, and no kubeconfig is found");
        return Err(failure.hint(
            "name a file with -f, where - is standard input, or a cluster with --kubeconfig",
        ));
    }
    for path in args.files.iter().map(PathBuf::as_path) {
        if path == Path::new("-") {
            reader.file(path, io.stdin)?;
        } else if path.is_dir() {
            reader.folder(path, args.recursive)?;
        } else {
            let opened = File::open(path).map_err(|error| unreadable(path, &error))?;
            reader.file(path, &mut BufReader::new(opened))?;
        }
    }
    reader.end()
}

/// Reads objects for an embedded cluster.
pub(crate) fn read_for_cluster(args: &FileArgs, io: &mut Io<'_>) -> Result<Vec<Document>, Failure> {
    let mut objects = Vec::new();
    if !args.files.is_empty() {
        read(args, io, &mut |object| {
            objects.push(object);
            Ok(())
        })?;
    }
    agent_fake::manifest::check_all(&objects)?;
    Ok(objects)
}

/// Opens a file, or standard input for `-`, and unpacks gzip while reading.
pub(crate) fn open<'a>(file: &Path, stdin: &'a mut dyn Read) -> io::Result<Box<dyn Read + 'a>> {
    let bytes: Box<dyn Read + 'a> = if file == Path::new("-") {
        Box::new(stdin)
    } else {
        Box::new(BufReader::new(File::open(file)?))
    };
    unpacked(bytes)
}

/// Unpacks gzip while reading.
fn unpacked<'a>(bytes: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let (head, bytes) = peek(bytes, GZIP.len())?;
    Ok(if head == GZIP {
        Box::new(MultiGzDecoder::new(bytes))
    } else {
        Box::new(bytes)
    })
}

/// The first bytes, and all bytes.
fn peek<'a>(mut bytes: impl Read + 'a, length: usize) -> io::Result<(Vec<u8>, impl Read + 'a)> {
    let mut head = Vec::new();
    bytes.by_ref().take(length as u64).read_to_end(&mut head)?;
    let all = Cursor::new(head.clone()).chain(bytes);
    Ok((head, all))
}

fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().and_then(|it| it.to_str());
    extension.is_some_and(|extension| EXTENSIONS.contains(&extension))
}

fn unreadable(file: &Path, error: &io::Error) -> Failure {
    let cause = format!("{}: cannot be read: {error}", file.display());
    let hint = if error.kind() == io::ErrorKind::FileTooLarge {
        "leave out all objects but ReplicaSets and pods"
    } else {
        "use a readable file, or - for standard input"
    };
    Failure::new(Exit::Usage, cause).hint(hint)
}

// === impl Reader ===

impl Reader<'_> {
    /// Reads a file that the command names: an archive or text, with or without gzip.
    fn file(&mut self, file: &Path, bytes: &mut dyn Read) -> Result<(), Failure> {
        let failed = |error: io::Error| unreadable(file, &error);
        let left = Rc::clone(&self.left);
        let bytes = Bounded::new(unpacked(bytes).map_err(failed)?, Rc::clone(&left));
        let (head, mut bytes) = peek(bytes, TAR_AT + TAR.len()).map_err(failed)?;
        if ZIP.iter().any(|zip| head.starts_with(zip)) {
            let mut all = Vec::new();
            bytes.read_to_end(&mut all).map_err(failed)?;
            let damaged = |error: ZipError| failed(error.into());
            let mut archive = ZipArchive::new(Cursor::new(all)).map_err(damaged)?;
            let names = archive.file_names().map(|name| Ok(name?.into_owned()));
            let names: Vec<_> = names.collect::<Result<_, _>>().map_err(damaged)?;
            for name in names.iter().filter(|name| is_manifest(name.as_ref())) {
                let member = archive.by_name(name).map_err(damaged)?;
                let mut member = Bounded::new(member, Rc::clone(&left));
                self.member(&file.join(name), &mut member)?;
            }
        } else if head.get(TAR_AT..) == Some(TAR) {
            let mut archive = tar::Archive::new(bytes);
            for member in archive.entries().map_err(failed)? {
                let mut member = member.map_err(failed)?;
                let path = file.join(member.path().map_err(failed)?);
                // Not a sparse file, whose holes take no room in the archive.
                if member.header().entry_type().is_file() {
                    self.member(&path, &mut member)?;
                }
            }
        } else {
            let mut text = Vec::new();
            bytes.read_to_end(&mut text).map_err(failed)?;
            let contents = contents(file, text)?;
            self.pass_on(contents)?;
        }
        Ok(())
    }

    /// Reads the files of a folder in the order of their names.
    fn folder(&mut self, folder: &Path, recursive: bool) -> Result<(), Failure> {
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            let failed = |error: io::Error| unreadable(&folder, &error);
            let entries = fs::read_dir(&folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
            let mut paths: Vec<_> = entries
                .map_err(failed)?
                .iter()
                .map(fs::DirEntry::path)
                .collect();
            paths.sort_unstable();
            for path in &paths {
                if is_manifest(path) && path.is_file() {
                    let opened = File::open(path).map_err(|error| unreadable(path, &error))?;
                    let mut opened = Bounded::new(opened, Rc::clone(&self.left));
                    self.member(path, &mut opened)?;
                }
            }
            // A link to a folder could lead to one around it.
            let below = paths.into_iter().rev();
            let below = below.filter(|path| path.is_dir() && !path.is_symlink());
            let below: Vec<_> = below.collect();
            if recursive {
                folders.extend(below);
            } else {
                self.has_folders |= !below.is_empty();
            }
        }
        Ok(())
    }

    /// Reads a file of a folder or an archive. Such files can be of any kind, so those that hold no objects are skipped.
    fn member(&mut self, path: &Path, bytes: &mut dyn Read) -> Result<(), Failure> {
        if !is_manifest(path) {
            return Ok(());
        }
        let mut text = Vec::new();
        let read = bytes.read_to_end(&mut text);
        read.map_err(|error| unreadable(path, &error))?;
        match contents(path, text) {
            Ok(mut contents) => {
                contents.documents.retain(|it| it.kind().is_ok());
                self.pass_on(contents)
            }
            Err(error) => {
                self.skipped.push(error.to_string());
                Ok(())
            }
        }
    }

    fn pass_on(&mut self, contents: agent_fake::manifest::Contents) -> Result<(), Failure> {
        for notice in contents.notices {
            writeln!(self.stderr, "notice: {}", one_line(&notice))?;
        }
        self.objects += contents.documents.len();
        contents.documents.into_iter().try_for_each(&mut *self.take)
    }

    fn end(self) -> Result<(), Failure> {
        let (skipped, named) = (self.skipped.len(), self.skipped.len().min(SKIPPED_MAX));
        for skipped in &self.skipped[..named] {
            writeln!(self.stderr, "notice: skipped {}", one_line(skipped))?;
        }
        if skipped > named {
            let more = count(skipped - named, "more file");
            writeln!(self.stderr, "notice: skipped {more}")?;
        }
        if self.objects > 0 {
            return Ok(());
        }
        let failure = Failure::new(Exit::Usage, "the input holds no objects");
        Err(failure.hint(if self.has_folders {
            "read the folders in a folder with -R".to_owned()
        } else {
            KUBECTL.to_owned()
        }))
    }
}

fn contents(file: &Path, bytes: Vec<u8>) -> Result<agent_fake::manifest::Contents, ManifestError> {
    agent_fake::manifest::open(file, &agent_fake::manifest::decode(file, bytes)?)
}

impl From<ManifestError> for Failure {
    fn from(error: ManifestError) -> Self {
        Self::new(Exit::Usage, error.to_string()).hint(KUBECTL)
    }
}
