//! That the search finds what is broken, in worlds that are small enough for a build without
//! optimisation.
