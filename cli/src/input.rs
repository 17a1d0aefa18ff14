//! Files of objects, as kubectl prints them.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufReader, Cursor, Read},
    path::{Path, PathBuf},
};

use flate2::read::MultiGzDecoder;
use manifest::{self, Document, ManifestError};
use serde_json::json;

use crate::exit::{Exit, Failure};

/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The maximum number of bytes of a file, unpacked. The largest clusters fit, and a small gzip file that unpacks without end does
/// not.
const BYTES_MAX: u64 = 2 << 30;

/// The remedy for input that is no list of objects.
pub(crate) const KUBECTL: &str = "use the output of: kubectl get rs,pods -o json";

/// Reads all objects of all files in order; `-` is standard input.
pub(crate) fn read(files: &[PathBuf], stdin: &mut dyn Read) -> Result<Vec<Document>, Failure> {
    let mut documents = Vec::new();
    for file in files {
        let bytes = bytes(file, stdin, BYTES_MAX).map_err(|error| {
            let cause = format!("{}: cannot be read: {error}", file.display());
            Failure::new(Exit::Usage, cause).hint("use a readable file, or - for standard input")
        })?;
        let text = manifest::decode(file, bytes)?;
        documents.extend(manifest::open(file, &text)?);
    }
    Ok(documents)
}

/// Reads objects for an embedded cluster, and adds their namespaces, because kubectl does not print them.
pub(crate) fn read_for_cluster(
    files: &[PathBuf],
    stdin: &mut dyn Read,
) -> Result<Vec<Document>, Failure> {
    let objects = read(files, stdin)?;
    manifest::check_all(&objects)?;
    Ok(with_namespaces(objects))
}

/// Adds the namespaces of objects, and keeps existing namespaces.
pub(crate) fn with_namespaces(mut documents: Vec<Document>) -> Vec<Document> {
    let namespaces = documents.iter().filter_map(|document| {
        let name = document.object.pointer("/metadata/namespace")?.as_str()?;
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        Some((name.to_owned(), (document.place.clone(), object)))
    });
    let mut missing: BTreeMap<_, _> = namespaces.collect();
    let kept = documents.iter().map(|document| &document.object);
    for namespace in kept.filter(|it| it["kind"] == "Namespace") {
        let name = namespace["metadata"]["name"].as_str();
        missing.remove(name.unwrap_or_default());
    }
    let missing = missing.into_values();
    documents.extend(missing.map(|(place, object)| Document { place, object }));
    documents
}

/// Reads at most `max` bytes of a file, and unpacks gzip.
fn bytes(file: &Path, stdin: &mut dyn Read, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(file, stdin)?.take(max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        let told = format!("more than {max} bytes, unpacked");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, told));
    }
    Ok(bytes)
}

/// Opens a file, or standard input for `-`, and unpacks gzip while reading.
pub(crate) fn open<'a>(file: &Path, stdin: &'a mut dyn Read) -> io::Result<Box<dyn Read + 'a>> {
    let bytes: Box<dyn Read + 'a> = if file == Path::new("-") {
        Box::new(stdin)
    } else {
        Box::new(File::open(file)?)
    };
    let mut bytes = BufReader::new(bytes);
    let mut head = Vec::new();
    let length = GZIP.len() as u64;
    bytes.by_ref().take(length).read_to_end(&mut head)?;
    let is_compressed = head == GZIP;
    let all = Cursor::new(head).chain(bytes);
    Ok(if is_compressed {
        Box::new(MultiGzDecoder::new(all))
    } else {
        Box::new(all)
    })
}

impl From<ManifestError> for Failure {
    fn from(error: ManifestError) -> Self {
        Self::new(Exit::Usage, error.to_string()).hint(KUBECTL)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    #[test]
    fn what_unpacks_beyond_the_bound_is_refused() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(&[b' '; 4_096]).expect("there is room");
        let packed = packed.finish().expect("there is room");
        let read = |max| bytes(Path::new("-"), &mut packed.as_slice(), max);
        assert_eq!(read(4_096).expect("it fits").len(), 4_096);
        let error = read(4_095).expect_err("it does not fit");
        assert_eq!(error.to_string(), "more than 4095 bytes, unpacked");
    }
}
