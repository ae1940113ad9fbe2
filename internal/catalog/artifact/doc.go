// Package artifact is a catalogue of modules as files: read from a folder, kept in an OCI registry, and mirrored with everything that
// it refers to, for networks that reach nothing else.
//
// # Overview
//
//	Read, Write      a folder ⇄ Files; byte for byte, bounded, without links
//	Decode           Files → Entries: the ModuleTemplates and ModuleReleaseMetas in them, and what is wrong with the rest
//	Registry         Push and Pull: Files ⇄ one OCI artifact, everything checked against its digest
//	Mirror           a catalogue and its sources → a registry or a folder that needs nothing else
//
// # What a catalogue is
//
// The *.yaml, *.yml and *.json at the top of a folder hold ModuleTemplates and ModuleReleaseMetas. What is in folders below may be
// sources, which templates name by paths relative to their file. As an artifact, it is one manifest of type ArtifactType with one
// layer of type LayerType: a tar.gz of the folder's files, sorted by name, without times and owners, so that the same folder is the
// same artifact.
//
// # Trade-offs
//
// A mirror holds what a source is, not how it came: the files are packed anew, and the templates of the mirror name them by their
// new digests. Signatures of the originals are checked while they are copied, and are not part of the mirror.
//
// Registries are spoken to over https only. What they send is hostile until checked: sizes and counts are bounded, and nothing
// leaves the folder that it is written to. The package may import the api module, internal/source, ORAS and sigs.k8s.io/yaml; it
// knows neither rendering nor clusters: whoever mirrors may give a function that does.
package artifact
