package source

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// gitHTTP is Git's smart protocol over https.
type gitHTTP struct {
	w     *wire
	alive func()
	// base is the repository's address, after redirects.
	base *url.URL
}

var _ gitRemote = (*gitHTTP)(nil)

func (g *gitFetcher) dialHTTP(ref Ref, alive func()) (*gitHTTP, error) {
	w, err := g.web.open(ref, ref.Git.URL)
	if err != nil {
		return nil, err
	}
	return &gitHTTP{w: w, alive: alive}, nil
}

func (h *gitHTTP) close() { h.w.close() }

const advertisement = "application/x-git-upload-pack-advertisement"

// refs also learns where the repository is: servers redirect to it.
func (h *gitHTTP) refs(ctx context.Context) (*packp.AdvRefs, error) {
	u := *h.w.origin
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/")+"/info/refs", ""
	u.RawQuery = "service=git-upload-pack"
	got, err := h.w.attempt(ctx, ask{url: &u}, h.alive)
	if err != nil {
		return nil, err
	}
	if got.contentType != advertisement {
		return nil, refuse(ErrUnsupported, "", "this is not a Git repository: the server answers %s", quote(got.contentType))
	}
	base := *got.url
	var ok bool
	if base.Path, ok = strings.CutSuffix(base.Path, "/info/refs"); !ok {
		return nil, refuse(ErrUnsupported, "", "server redirects to something that is no Git repository")
	}
	base.RawPath, base.RawQuery = "", ""
	h.base = &base
	return decodeRefs(ctx, bytes.NewReader(got.data))
}

// decodeRefs reads what a server advertises.
func decodeRefs(ctx context.Context, r io.Reader) (*packp.AdvRefs, error) {
	adv := packp.NewAdvRefs()
	err := adv.Decode(r)
	if errors.Is(err, packp.ErrEmptyAdvRefs) {
		return nil, refuse(ErrNotFound, "", "repository is empty")
	}
	if err != nil {
		return nil, gitError(ctx, err)
	}
	return adv, nil
}

// pack posts the request to where the references came from.
func (h *gitHTTP) pack(ctx context.Context, request []byte) (io.ReadCloser, error) {
	u := *h.base
	u.Path += "/git-upload-pack"
	resp, err := h.w.do(ctx, ask{url: &u, method: http.MethodPost, body: request, contentType: "application/x-git-upload-pack-request"})
	if err != nil {
		return nil, err
	}
	if err := statusError(resp); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return &livelyBody{touching{resp.Body, h.alive}, resp.Body}, nil
}
