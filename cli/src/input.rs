//! Files of objects, as kubectl prints them, also in folders and archives.
//!
//! **Invariant:** the bytes of all files of a command together, unpacked, are bounded, and one file is in memory at a time. Paths in
//! archives are only named, and nothing is written to disk.

use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, File},
    io::{self, BufReader, Cursor, Read, Write},
    path::{Path, PathBuf},
    rc::Rc,
};

use agent_fake::manifest::{self, Document, ManifestError};
use decree_core::wording::count;
use flate2::read::MultiGzDecoder;

mod bounded;

use bounded::{Bounded, Packed, Used};

use crate::{
    args::FileArgs,
    exit::{Exit, Failure},
    page::{Io, one_line},
};

/// The first bytes of a gzip file.
const GZIP: &[u8] = b"\x1f\x8b";
/// The word in the header of a tar archive, and its position.
const TAR: &[u8] = b"ustar";
const TAR_AT: usize = 257;
/// The extensions of files that folders and archives are read for.
const EXTENSIONS: [&str; 3] = ["json", "yaml", "yml"];

/// The remedy for input that is no list of objects.
pub(crate) const KUBECTL: &str = "use the output of: kubectl get rs,pods -o json";

/// What becomes of each object.
type Take<'a> = &'a mut dyn FnMut(Document) -> Result<(), Failure>;

/// The files of a command while they are read.
struct Reader<'a> {
    /// The kinds of objects that folders and archives are read for.
    kinds: &'a [&'a str],
    take: Take<'a>,
    stderr: &'a mut dyn Write,
    used: Rc<Used>,
    objects: usize,
    /// What is skipped in folders and archives, which can hold anything: the number by the noun.
    skipped: BTreeMap<&'static str, usize>,
    /// Why the first unreadable file is none of YAML or JSON.
    unreadable: Option<String>,
}

/// Passes on all objects of files in order, and those of `kinds` in folders and archives; `-` is standard input.
pub(crate) fn read(
    args: &FileArgs,
    kinds: &[&str],
    io: &mut Io<'_>,
    take: Take<'_>,
) -> Result<(), Failure> {
    let mut reader = Reader {
        kinds,
        take,
        stderr: io.stderr,
        used: Rc::default(),
        objects: 0,
        skipped: BTreeMap::new(),
        unreadable: None,
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
            reader.folder(path)?;
        } else {
            let opened = File::open(path).map_err(|error| unreadable(path, &error))?;
            reader.file(path, &mut BufReader::new(opened))?;
        }
    }
    reader.end()
}

pub(crate) fn read_for_cluster(args: &FileArgs, io: &mut Io<'_>) -> Result<Vec<Document>, Failure> {
    let mut objects = Vec::new();
    if !args.files.is_empty() {
        read(args, &manifest::KINDS, io, &mut |object| {
            objects.push(object);
            Ok(())
        })?;
    }
    manifest::check_all(&objects)?;
    Ok(newest(objects))
}

/// The newest state of each object: dumps hold some objects twice.
fn newest(mut objects: Vec<Document>) -> Vec<Document> {
    let text = |it: &Document, path| it.object.pointer(path)?.as_str().map(str::to_owned);
    let version = |it: &Document| text(it, "/metadata/resourceVersion")?.parse::<u128>().ok();
    let fields = ["/kind", "/metadata/namespace", "/metadata/name"];
    let key = |it: &Document| fields.map(|path| text(it, path));
    let mut newest = HashMap::new();
    for object in &objects {
        if let Some(version) = version(object) {
            let known = newest.entry(key(object)).or_insert(version);
            *known = version.max(*known);
        }
    }
    objects.retain(|it| {
        let Some(version) = version(it) else {
            return true;
        };
        let key = key(it);
        newest.get(&key) == Some(&version) && newest.remove(&key).is_some()
    });
    objects
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

/// Whether a path in a folder leads to a file in that folder.
fn is_in(folder: &Path, path: &Path) -> bool {
    path.is_file() && path.canonicalize().is_ok_and(|it| it.starts_with(folder))
}

/// The label of a member: its path below that of the archive, whatever it is.
fn label(archive: &Path, member: &Path) -> PathBuf {
    archive.join(member.strip_prefix("/").unwrap_or(member))
}

fn unreadable(file: &Path, error: &io::Error) -> Failure {
    let cause = format!("{}: cannot be read: {error}", file.display());
    let hint = if error.kind() == io::ErrorKind::FileTooLarge {
        "read only the files with ReplicaSets and pods"
    } else {
        "use a readable file, or - for standard input"
    };
    Failure::new(Exit::Usage, cause).hint(hint)
}

impl Reader<'_> {
    /// Reads a file that the command names: an archive or text, with or without gzip.
    fn file(&mut self, file: &Path, bytes: &mut dyn Read) -> Result<(), Failure> {
        let failed = |error: io::Error| unreadable(file, &error);
        let bytes = Packed::new(bytes, Rc::clone(&self.used));
        let bytes = Bounded::new(unpacked(bytes).map_err(failed)?, Rc::clone(&self.used));
        let (head, mut bytes) = peek(bytes, TAR_AT + TAR.len()).map_err(failed)?;
        if head.get(TAR_AT..) == Some(TAR) {
            return self.tar(file, bytes);
        }
        let mut all = Vec::new();
        bytes.read_to_end(&mut all).map_err(failed)?;
        let contents = contents(file, all)?;
        self.pass_on(contents)
    }

    fn tar(&mut self, file: &Path, bytes: impl Read) -> Result<(), Failure> {
        let failed = |error: io::Error| unreadable(file, &error);
        let mut archive = tar::Archive::new(bytes);
        for member in archive.entries().map_err(failed)? {
            let mut member = member.map_err(failed)?;
            let path = label(file, &member.path().map_err(failed)?);
            let kind = member.header().entry_type();
            if !kind.is_dir() {
                // Not a link, nor a sparse file, whose holes take no room in the archive.
                let bytes = kind.is_file().then_some(&mut member as &mut dyn Read);
                self.member(&path, bytes)?;
            }
        }
        Ok(())
    }

    /// Reads the files of a folder and of all folders in it, in the order of their names. Links are followed to files of the folder, and
    /// not to folders, which could be around it.
    fn folder(&mut self, root: &Path) -> Result<(), Failure> {
        let whole = root.canonicalize();
        let whole = whole.map_err(|error| unreadable(root, &error))?;
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(&folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
            let entries = entries.map_err(|error| unreadable(&folder, &error))?;
            let mut paths: Vec<_> = entries.iter().map(fs::DirEntry::path).collect();
            paths.sort_unstable();
            let (below, files): (Vec<_>, Vec<_>) = paths.into_iter().partition(|it| it.is_dir());
            for path in &files {
                if is_manifest(path) && is_in(&whole, path) {
                    let opened = File::open(path).map_err(|error| unreadable(path, &error))?;
                    let opened = Packed::new(opened, Rc::clone(&self.used));
                    let mut opened = Bounded::new(opened, Rc::clone(&self.used));
                    self.member(path, Some(&mut opened))?;
                } else {
                    self.member(path, None)?;
                }
            }
            folders.extend(below.into_iter().rev().filter(|it| !it.is_symlink()));
        }
        Ok(())
    }

    /// Reads a file of a folder or an archive. Such files can be of any kind, so those that hold no objects are skipped. Without bytes, the
    /// file is none that can be read.
    fn member(&mut self, path: &Path, bytes: Option<&mut dyn Read>) -> Result<(), Failure> {
        let Some(bytes) = bytes.filter(|_| is_manifest(path)) else {
            self.skip(1, "other file");
            return Ok(());
        };
        let mut text = Vec::new();
        let read = bytes.read_to_end(&mut text);
        read.map_err(|error| unreadable(path, &error))?;
        match contents(path, text) {
            Ok(mut contents) => {
                let all = contents.documents.len();
                let is_wanted =
                    |it: &Document| it.kind().is_ok_and(|kind| self.kinds.contains(&kind));
                contents.documents.retain(is_wanted);
                self.skip(all - contents.documents.len(), "other object");
                self.pass_on(contents)
            }
            Err(error) => {
                self.skip(1, "unreadable file");
                self.unreadable.get_or_insert_with(|| error.to_string());
                Ok(())
            }
        }
    }

    fn skip(&mut self, number: usize, noun: &'static str) {
        if number > 0 {
            *self.skipped.entry(noun).or_default() += number;
        }
    }

    fn pass_on(&mut self, contents: manifest::Contents) -> Result<(), Failure> {
        for notice in contents.notices {
            writeln!(self.stderr, "notice: {}", one_line(&notice))?;
        }
        self.objects += contents.documents.len();
        contents.documents.into_iter().try_for_each(&mut *self.take)
    }

    fn end(self) -> Result<(), Failure> {
        let skipped = self.skipped.iter();
        let skipped = skipped.map(|(noun, number)| count(*number, noun).to_string());
        let skipped: Vec<_> = skipped.chain(self.unreadable).collect();
        if !skipped.is_empty() {
            let skipped = one_line(&skipped.join(", "));
            writeln!(self.stderr, "notice: skipped {skipped}")?;
        }
        if self.objects > 0 {
            return Ok(());
        }
        let failure = Failure::new(Exit::Usage, "the input holds no objects");
        Err(failure.hint(KUBECTL))
    }
}

fn contents(file: &Path, bytes: Vec<u8>) -> Result<manifest::Contents, ManifestError> {
    manifest::open(file, &manifest::decode(file, bytes)?)
}

impl From<ManifestError> for Failure {
    fn from(error: ManifestError) -> Self {
        Self::new(Exit::Usage, error.to_string()).hint(KUBECTL)
    }
}
