// Package source fetches the sources of modules and checks them: a place in, a verified tree of files out.
//
// It knows directories, single files, standard input, HTTP(S) archives, Git over https and ssh, Helm repositories and OCI
// registries; Fetcher is the contract by which others are added. Everything that arrives is hostile until checked: sizes,
// counts, paths and links are bounded before a byte is kept. docs/sources.md is what its users read.
//
// # What is fetched
//
//   - A chart is a folder, or an archive with one folder at its top. A folder's .helmignore is honoured.
//   - A kustomization is its folder and every local folder and file that it refers to, directly or not; the tree's root
//     is then their closest common ancestor, and Tree.Root says where the named folder is. References to other hosts
//     are refused, but for bases that are pinned by a commit or a digest: who renders fetches those as sources of their own.
//   - Manifests are one YAML or JSON file, or all of them in a folder.
//
// # How it fits together
//
//	Polled   one fetch for all who ask, trees in memory, moving references asked for again at intervals
//	  Mux    checks the reference, reads its credentials, waits for its host's turn, bounds the time
//	    downloader, gitFetcher, helmFetcher, ociFetcher   the protocols
//	      wire, guard   HTTP with redirects, mirrors, proxies and addresses checked; credentials for one origin only
//	      store         what is known by its digest, on disk
//	    Unpack, checkout   bytes → tree
//
// # Trade-offs
//
// A tree is held in memory: it is bounded, it is needed whole by every renderer, and nothing has to be cleaned up. What
// only kustomize can know when it runs, such as addresses inside of the configurations of its plugins, is not found
// here: whoever renders a tree that is not Trusted must deny it the network.
//
// Git is spoken by our own connections, over the messages and packs of go-git: its transports follow redirects with
// credentials, know no guard, and read the configuration of whoever runs us.
//
// The package may import the api module, its own store, helm's readers of ignore and provenance files, a YAML parser, semver, the parts of
// go-git below its porcelain, ORAS, ssh and the standard library; it knows neither rendering nor runtimes.
package source

// File is one regular file of a tree.
type File struct {
	// Path is relative to the tree's root, slash-separated and clean.
	Path string `json:"path"`
	// Data is the file's content. It must not be changed.
	Data []byte `json:"data"`
}

// Tree is the verified content of a source. It is immutable and safe for concurrent use.
type Tree struct {
	// Digest ("sha256:<hex>") of the content: of an archive's bytes, or of a directory's paths and contents.
	Digest string `json:"digest"`
	// Root is the folder within the tree that the source names, "." for the tree itself: a kustomization may refer
	// to its siblings.
	Root string `json:"root"`
	// Files sorted by path.
	Files []File `json:"files"`
	// Revision is what a moving reference was resolved to, for people: "main@sha1:<commit>", "1.2.3@sha256:<digest of
	// the chart>", "latest@sha256:<digest of the manifest>". Empty where the digest says it all.
	Revision string `json:"revision,omitempty"`
	// Validator is what a server calls this content (an ETag), to be asked whether it is still current. Opaque.
	Validator string `json:"-"`
	// Trusted says that the content is the caller's own (a local path), not somebody else's (a download).
	Trusted bool `json:"trusted"`
}
