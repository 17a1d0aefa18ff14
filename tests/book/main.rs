//! Tier: the documents as a site, built by mdbook.
//!
//! Two tests need no tool: docs/api.md must match the contract, and docs/errors.md the reasons in the code.
//! The other tests build the site and use it like a reader: links and anchors resolve, no page loads anything from another host, and the
//! search finds the contents in a real Chromium. Every page fits narrow and wide screens, and axe reports nothing.

mod api;
mod errors;
mod pages;
mod search;
mod site;
mod walk;
