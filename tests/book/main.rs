//! Tier: the documents as a site, built by mdbook.
//!
//! The reference of the API is made from the contract, and the page of errors is held against the reasons that the code knows; both need no
//! tool. The site itself is built and looked at as a reader would: each link and anchor leads somewhere, nothing is loaded from another host, and the
//! search of the pages, in a real Chromium, finds what they say. There, every page fits narrow and wide screens, and axe finds nothing.

mod api;
mod errors;
mod pages;
mod search;
mod site;
mod walk;
