//! stub
use crate::{
    Io,
    args::DemoArgs,
    exit::{Exit, Failure},
};
pub(crate) fn run(_args: &DemoArgs, _io: &mut Io<'_>) -> Result<Exit, Failure> {
    Ok(Exit::Done)
}
