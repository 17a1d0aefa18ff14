//! A local set of certificates: a CA, a server, one client of each role, and the policy that grants their rights.
//!
//! For trials and tests only: the set includes the key of the CA, and has no revocation lists.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    net::IpAddr,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
    time::{Duration, SystemTime},
};

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use server_core::wording::count;

use crate::{
    args::PkiDevArgs,
    exit::{Exit, Failure},
    page::Io,
};

/// The names of the server: on this machine, and as the Service of the manifests.
const SERVER_NAMES: [&str; 6] = [
    "localhost",
    "127.0.0.1",
    "::1",
    "decree-server",
    "decree-server.decree-system",
    "decree-server.decree-system.svc",
];
/// The roles of docs/security.md, each of which gets a certificate.
const CLIENTS: [&str; 3] = ["agent", "viewer", "admin"];
/// The domain of the SPIFFE ids, which the policies of the manifests name.
const TRUST_DOMAIN: &str = "decree.local";
const DAY: Duration = Duration::from_hours(24);
/// The maximum difference between the clocks of two machines.
const CLOCK_SKEW: Duration = Duration::from_hours(1);
const PRIVATE_FOLDER: u32 = 0o700;
const PRIVATE_FILE: u32 = 0o600;
const PUBLIC_FILE: u32 = 0o644;

pub(crate) fn run(args: &PkiDevArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    create_folder(&args.out)?;
    let ca = issue_ca(args)?;
    issue(args, &ca, "server", &server_names(args))?;
    for client in CLIENTS {
        issue(args, &ca, client, &[])?;
    }
    write(&args.out, "policy.toml", &policy(), PUBLIC_FILE)?;
    io.stdout.write_all(advice(args).as_bytes())?;
    Ok(Exit::Done)
}

fn issue_ca(args: &PkiDevArgs) -> Result<Issuer<'static, KeyPair>, Failure> {
    let mut params = params(args, &format!("Decree development CA of {TRUST_DOMAIN}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.subject_alt_names = vec![uri(&format!("spiffe://{TRUST_DOMAIN}"))?];
    let key = KeyPair::generate().map_err(impossible)?;
    let ca = params.self_signed(&key).map_err(impossible)?;
    write_pair(&args.out, "ca", &ca, &key)?;
    Ok(Issuer::new(params, key))
}

/// Issues a certificate for a role and writes it with its key. A certificate with names is for a server.
fn issue(
    args: &PkiDevArgs,
    ca: &Issuer<'_, KeyPair>,
    role: &str,
    names: &[SanType],
) -> Result<(), Failure> {
    let mut params = params(args, role);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![if names.is_empty() {
        ExtendedKeyUsagePurpose::ClientAuth
    } else {
        ExtendedKeyUsagePurpose::ServerAuth
    }];
    let id = uri(&format!("spiffe://{TRUST_DOMAIN}/{role}"))?;
    params.subject_alt_names = [&[id], names].concat();
    let key = KeyPair::generate().map_err(impossible)?;
    let cert = params.signed_by(&key, ca).map_err(impossible)?;
    write_pair(&args.out, role, &cert, &key)
}

fn params(args: &PkiDevArgs, name: &str) -> CertificateParams {
    let (mut params, now) = (CertificateParams::default(), SystemTime::now());
    params.not_before = (now - CLOCK_SKEW).into();
    params.not_after = (now + DAY * u32::from(args.days)).into();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// The names of the server. Hosts for which no certificate is possible are left out.
fn server_names(args: &PkiDevArgs) -> Vec<SanType> {
    let given = args.hosts.iter().map(String::as_str);
    let names = SERVER_NAMES.into_iter().chain(given);
    let names = names.filter_map(|name| match name.parse::<IpAddr>() {
        Ok(address) => Some(SanType::IpAddress(address)),
        Err(_) => name.try_into().ok().map(SanType::DnsName),
    });
    names.collect()
}

fn uri(text: &str) -> Result<SanType, Failure> {
    text.try_into().map(SanType::URI).map_err(impossible)
}

fn impossible(error: rcgen::Error) -> Failure {
    Failure::new(Exit::No, format!("certificates cannot be made: {error}"))
}

fn create_folder(path: &Path) -> Result<(), Failure> {
    let created = DirBuilder::new()
        .recursive(true)
        .mode(PRIVATE_FOLDER)
        .create(path);
    created.map_err(|error| unwritable(path, &error))?;
    let mut entries = fs::read_dir(path).map_err(|error| unwritable(path, &error))?;
    if entries.next().is_some() {
        let cause = format!("--out {}: is not empty", path.display());
        let failure = Failure::new(Exit::Usage, cause);
        return Err(failure.hint("name another folder, or remove this one"));
    }
    Ok(())
}

fn write_pair(
    folder: &Path,
    name: &str,
    certificate: &Certificate,
    key: &KeyPair,
) -> Result<(), Failure> {
    let (certificate, key) = (certificate.pem(), key.serialize_pem());
    write(folder, &format!("{name}.crt"), &certificate, PUBLIC_FILE)?;
    write(folder, &format!("{name}.key"), &key, PRIVATE_FILE)
}

/// Writes a new file, with its mode from the start. Fails if the file exists.
fn write(folder: &Path, name: &str, text: &str, mode: u32) -> Result<(), Failure> {
    let path = folder.join(name);
    let opened = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&path);
    let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| unwritable(&path, &error))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let cause = format!("{} cannot be written: {error}", path.display());
    Failure::new(Exit::No, cause)
}

/// The policy that grants each client its role for all clusters.
fn policy() -> String {
    let grant = |role: &str| {
        let clusters = match role {
            "admin" => "",
            _ => "clusters = [\"*\"]\n",
        };
        format!(
            "[[grant]]\nidentities = [\"spiffe://{TRUST_DOMAIN}/{role}\"]\nrole = \"{role}\"\n{clusters}"
        )
    };
    CLIENTS.map(grant).join("\n")
}

/// The commands that use the set.
fn advice(args: &PkiDevArgs) -> String {
    let out = args.out.display().to_string();
    let flags = |role: &str| {
        format!("--tls-cert {out}/{role}.crt --tls-key {out}/{role}.key --tls-ca {out}/ca.crt")
    };
    let url = "https://localhost:50051";
    let files = format!("-cacert {out}/ca.crt -cert {out}/admin.crt -key {out}/admin.key");
    let days = count(args.days, "day");
    format!(
        "wrote a CA, certificates for server, agent, viewer and admin, and a policy to {out}, valid for {days}\n\
         \n\
         decree-server --policy {out}/policy.toml {}\n\
         decree-agent --cluster fake --server {url} {}\n\
         decree get replicasets --server {url} {}\n\
         grpcurl {files} localhost:50051 list\n",
        flags("server"),
        flags("agent"),
        flags("viewer"),
    )
}
