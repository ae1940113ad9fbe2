package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
)

// gitFetcher fetches folders of Git repositories, over https and ssh: one commit, without its history, and without a
// work tree on disk. go-git gives the protocol's messages and reads packs; the connections are ours, for they have to be
// guarded and bounded.
type gitFetcher struct {
	web *downloader
	// heavy is held while a pack is read, which takes many times its size.
	heavy chan struct{}
}

var _ Checker = (*gitFetcher)(nil)

// gitRemote is a repository on a server, for one fetch.
type gitRemote interface {
	// refs asks for the references.
	refs(ctx context.Context) (*packp.AdvRefs, error)
	// pack sends a request and returns the answer. It is called once, after refs.
	pack(ctx context.Context, request []byte) (io.ReadCloser, error)
	// close ends the connection.
	close()
}

// connect opens the connection that a reference needs.
func (g *gitFetcher) connect(ctx context.Context, ref Ref, alive func()) (gitRemote, error) {
	u, err := url.Parse(ref.Git.URL)
	if err != nil {
		return nil, refuse(ErrInvalid, "", "this is not an address")
	}
	if u.Scheme == "ssh" {
		return g.dialSSH(ctx, ref, u, alive)
	}
	return g.dialHTTP(ref, alive)
}

// Fetch resolves the reference and downloads its commit, if that is not on disk.
func (g *gitFetcher) Fetch(ctx context.Context, ref Ref) (*Tree, error) {
	if isCommit(ref.Git.Ref) {
		if t, ok := g.stored(ctx, ref, ref.Git.Ref); ok {
			return t, verify(ref, t.Digest)
		}
	}
	var t *Tree
	err := g.web.retry(ctx, func(ctx context.Context, alive func()) error {
		remote, err := g.connect(ctx, ref, alive)
		if err != nil {
			return err
		}
		defer remote.close()
		t, err = g.clone(ctx, ref, remote)
		return err
	})
	if err != nil {
		return nil, err
	}
	return t, verify(ref, t.Digest)
}

// Current asks where the reference leads now.
func (g *gitFetcher) Current(ctx context.Context, ref Ref, t *Tree) (bool, error) {
	same := false
	err := g.web.retry(ctx, func(ctx context.Context, alive func()) error {
		remote, err := g.connect(ctx, ref, alive)
		if err != nil {
			return err
		}
		defer remote.close()
		target, err := g.resolve(ctx, ref, remote)
		if err != nil {
			return err
		}
		same = t.Revision == target.revision()
		return nil
	})
	return same, err
}

// target is what a reference leads to.
type target struct {
	// name of the branch or tag, "" where a commit was named.
	name string
	// object is what to ask for: a commit, or a tag that leads to it.
	object, commit plumbing.Hash
	// capabilities of the server.
	capabilities *capability.List
}

// revision for people.
func (t target) revision() string {
	if t.name == "" {
		return "sha1:" + t.commit.String()
	}
	return t.name + "@sha1:" + t.commit.String()
}

func (g *gitFetcher) resolve(ctx context.Context, ref Ref, remote gitRemote) (target, error) {
	adv, err := remote.refs(ctx)
	if err != nil {
		return target{}, err
	}
	return resolveRef(adv, ref.Git.Ref)
}

// resolveRef finds what a person calls a branch, a tag or a commit among what the server has.
func resolveRef(adv *packp.AdvRefs, ref string) (target, error) {
	t := target{name: ref, capabilities: adv.Capabilities}
	if isCommit(ref) {
		t.name, t.object, t.commit = "", plumbing.NewHash(ref), plumbing.NewHash(ref)
		return t, askable(adv, t.commit)
	}
	name, err := fullName(adv, ref)
	if err != nil {
		return t, err
	}
	if name == "HEAD" {
		t.name, t.object, t.commit = "HEAD", *adv.Head, *adv.Head
		return t, nil
	}
	t.object = adv.References[name]
	t.commit = t.object
	if peeled, ok := adv.Peeled[name]; ok {
		t.commit = peeled
	}
	return t, nil
}

// askable says whether a server gives a commit by its hash.
func askable(adv *packp.AdvRefs, commit plumbing.Hash) error {
	for _, can := range []capability.Capability{capability.AllowReachableSHA1InWant, "allow-any-sha1-in-want"} {
		if adv.Capabilities.Supports(can) {
			return nil
		}
	}
	for _, known := range []map[string]plumbing.Hash{adv.References, adv.Peeled} {
		for _, h := range known {
			if h == commit {
				return nil
			}
		}
	}
	return refuse(ErrUnsupported, "", "server gives branches and tags only, and this commit is none of them: name a branch or tag, and set digest")
}

// fullName is the full name of a reference, or "HEAD".
func fullName(adv *packp.AdvRefs, ref string) (string, error) {
	has := func(name string) bool { _, ok := adv.References[name]; return ok }
	branch, tag := "refs/heads/"+ref, "refs/tags/"+ref
	switch {
	case ref == "" && adv.Head == nil:
		return "", refuse(ErrNotFound, "", "repository has no default branch: set ref")
	case ref == "":
		return "HEAD", nil
	case strings.HasPrefix(ref, "refs/") && has(ref):
		return ref, nil
	case has(branch) && has(tag):
		return "", refuse(ErrInvalid, "", "%s is both a branch and a tag: say %s or %s", quote(ref), branch, tag)
	case has(branch):
		return branch, nil
	case has(tag):
		return tag, nil
	}
	return "", refuse(ErrNotFound, "", "repository has no branch or tag %s", quote(ref))
}

// clone resolves and downloads.
func (g *gitFetcher) clone(ctx context.Context, ref Ref, remote gitRemote) (*Tree, error) {
	target, err := g.resolve(ctx, ref, remote)
	if err != nil {
		return nil, err
	}
	if t, ok := g.stored(ctx, ref, target.commit.String()); ok {
		t.Revision = target.revision()
		return t, nil
	}
	data, err := g.download(ctx, remote, target)
	if err != nil {
		return nil, err
	}
	t, err := g.read(ctx, ref, data, &target)
	if err != nil {
		return nil, err
	}
	t.Revision = target.revision()
	g.keep(ref, target.commit.String(), t)
	return t, nil
}

// download asks for one commit without its history and returns the pack.
func (g *gitFetcher) download(ctx context.Context, remote gitRemote, t target) ([]byte, error) {
	req := packp.NewUploadPackRequestFromCapabilities(t.capabilities)
	req.Capabilities.Delete(capability.ThinPack)
	req.Wants = []plumbing.Hash{t.object}
	if t.capabilities.Supports(capability.Shallow) {
		req.Depth = packp.DepthCommits(1)
		_ = req.Capabilities.Set(capability.Shallow)
	}
	if t.capabilities.Supports(capability.NoProgress) {
		_ = req.Capabilities.Set(capability.NoProgress)
	}
	var request bytes.Buffer
	if err := req.UploadRequest.Encode(&request); err != nil {
		return nil, refuse(ErrInvalid, "", "server's capabilities are malformed")
	}
	if err := pktline.NewEncoder(&request).EncodeString("done\n"); err != nil {
		return nil, err
	}
	answer, err := remote.pack(ctx, request.Bytes())
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	data, err := g.receive(ctx, req, answer)
	if said, ok := errors.AsType[*pktline.ErrorLine](err); ok {
		if t.name == "" {
			return nil, refuse(ErrNotFound, "", "repository has no such commit, or does not give it: server says %s", quote(said.Text))
		}
		// It has just said that it has it: where it leads to is asked once more.
		return nil, refuse(ErrUnavailable, "", "%s moved while it was read: server says %s", quote(t.name), quote(said.Text))
	}
	return data, err
}

// receive reads the answer to a request: what is cut off, and then the pack.
func (g *gitFetcher) receive(ctx context.Context, req *packp.UploadPackRequest, answer io.ReadCloser) ([]byte, error) {
	resp := packp.NewUploadPackResponse(req)
	if err := resp.Decode(answer); err != nil {
		return nil, gitError(ctx, err)
	}
	var r io.Reader = resp
	switch {
	case req.Capabilities.Supports(capability.Sideband64k):
		r = sideband.NewDemuxer(sideband.Sideband64k, resp)
	case req.Capabilities.Supports(capability.Sideband):
		r = sideband.NewDemuxer(sideband.Sideband, resp)
	}
	limit := g.web.limits.Download
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, gitError(ctx, err)
	}
	if int64(len(data)) > limit {
		return nil, refuse(ErrTooLarge, "", "commit is larger than the limit of %d bytes", limit)
	}
	return data, nil
}

// gitError explains what goes wrong while a server is read.
func gitError(ctx context.Context, err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if said, ok := errors.AsType[*pktline.ErrorLine](err); ok {
		e := refuse(ErrDenied, "", "server says %s", quote(said.Text))
		e.Err = said
		return e
	}
	if context.Cause(ctx) != nil || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return transportError(ctx, err, "ended in the middle")
	}
	return &Error{Problem: "server answers something that is not Git's protocol", Reason: ErrUnsupported, Err: shortened(err)}
}

// read unpacks a pack and takes the folder out of it. It sets the commit of a tag, which only the pack may know.
func (g *gitFetcher) read(ctx context.Context, ref Ref, data []byte, t *target) (*Tree, error) {
	select {
	case g.heavy <- struct{}{}:
		defer func() { <-g.heavy }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	objects, err := readPack(data, g.web.limits)
	if err != nil {
		return nil, err
	}
	commit, root, err := objects.peel(t.object)
	if err != nil {
		return nil, err
	}
	t.commit = commit
	return checkout(ctx, &gitWalker{objects: objects, root: root, budget: budget{limits: g.web.limits}}, ref)
}

// key of a commit's folder on disk. Those with other credentials do not share: they may see other repositories.
func (g *gitFetcher) key(ref Ref, commit string) string {
	return fmt.Sprintf("%q", []string{"git", string(ref.Kind), Redact(ref.Git.URL), commit, ref.Git.Path, ref.credentialsName()})
}

// keep puts a tree on disk, unless it came by a password that stood in the address: nothing of that is written.
func (g *gitFetcher) keep(ref Ref, commit string, t *Tree) {
	if g.web.disk == nil || hasPassword(ref.Git.URL) {
		return
	}
	data, err := packTree(t.Files)
	if err != nil {
		return
	}
	g.web.disk.Name(g.key(ref, commit), g.web.disk.Put(data), t.Root)
}

func hasPassword(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return err != nil
	}
	_, has := u.User.Password()
	return has || u.Scheme != "ssh"
}

// stored is a tree that was kept.
func (g *gitFetcher) stored(ctx context.Context, ref Ref, commit string) (*Tree, bool) {
	data, root, ok := g.web.disk.Find(g.key(ref, commit))
	if !ok || hasPassword(ref.Git.URL) {
		return nil, false
	}
	files, err := unpack(ctx, data, g.web.limits)
	if err != nil {
		return nil, false
	}
	t := &Tree{Digest: TreeDigest(files), Root: root, Files: files, Revision: "sha1:" + commit}
	return t, g.web.limits.Check(t) == nil
}
