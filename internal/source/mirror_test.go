package source

import (
	"net/netip"
	"net/url"
	"testing"
	"testing/synctest"
	"time"
)

func TestMirroredPlaces(t *testing.T) {
	t.Parallel()
	m := newMirrors(map[string]string{
		"charts.example.com": "mirror.local:5000", "GHCR.io": "mirror.local/ghcr", "ghcr.io/org": "other.local", "docker.io": "mirror.local/docker",
		"git.example.com/team": "mirror.local/git/team",
	})
	for address, want := range map[string]string{
		"https://charts.example.com/a/b.tgz?x=1":            "https://mirror.local:5000/a/b.tgz?x=1",
		"https://charts.example.com/a%2Fb":                  "https://mirror.local:5000/a%2Fb",
		"https://charts.example.com:8443/a":                 "https://charts.example.com:8443/a",
		"https://ghcr.io/v2/team/web/manifests/1":           "https://mirror.local/v2/ghcr/team/web/manifests/1",
		"https://ghcr.io/v2/":                               "https://mirror.local/v2/",
		"https://ghcr.io/v2/org/web/manifests/1":            "https://other.local/v2/web/manifests/1",
		"https://ghcr.io/v2/organic/web/manifests/1":        "https://mirror.local/v2/ghcr/organic/web/manifests/1",
		"https://registry-1.docker.io/v2/library/web/blobs": "https://mirror.local/v2/docker/library/web/blobs",
		"https://git.example.com/team/web.git/info/refs":    "https://mirror.local/git/team/web.git/info/refs",
		"ssh://git@git.example.com/team/web":                "ssh://git@mirror.local/git/team/web",
		"https://git.example.com/others/web.git/info/refs":  "https://git.example.com/others/web.git/info/refs",
		"https://example.com/":                              "https://example.com/",
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.of(u).String(); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
	if !m.holds("mirror.local") || m.holds("ghcr.io") {
		t.Error("it does not know its mirrors")
	}
}

func TestPrivateHosts(t *testing.T) {
	t.Parallel()
	g := &guard{origin: "registry.example.com", private: newAllowed([]string{"Store.local", "10.1.0.0/16", "192.168.0.7"})}
	for place, want := range map[[2]string]bool{
		{"store.local", "10.9.0.1"}:                 true,
		{"else.local", "10.1.2.3"}:                  true,
		{"else.local", "::ffff:10.1.2.3"}:           true,
		{"else.local", "10.2.0.1"}:                  false,
		{"else.local", "192.168.0.7"}:               true,
		{"else.local", "192.168.0.8"}:               false,
		{"registry.example.com", "10.9.0.1"}:        true, // whoever wrote the reference chose it
		{"registry.example.com", "169.254.169.254"}: false,
		{"registry.example.com", "fd00:ec2::254"}:   false,
		{"registry.example.com", "100.100.100.200"}: false,
		{"localhost", "127.0.0.1"}:                  false,
	} {
		if err := g.allow(place[0], netip.MustParseAddr(place[1])); (err == nil) != want {
			t.Errorf("%s at %s: %v", place[0], place[1], err)
		}
	}
	if err := (&guard{origin: "169.254.0.1", private: newAllowed([]string{"169.254.0.0/16"})}).allow("169.254.0.1", netip.MustParseAddr("169.254.0.1")); err != nil {
		t.Errorf("allowed: %v", err)
	}
}

// More than ten a second may not begin at one host, in the long run; others do not wait for it.
func TestGateHasAPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(4, 10)
		begun := time.Now()
		for n := range 130 {
			host := "example.com"
			if n%13 == 0 {
				host = "example.org"
			}
			leave, err := g.enter(t.Context(), host)
			if err != nil {
				t.Fatal(err)
			}
			leave()
		}
		if took := time.Since(begun); took < 1900*time.Millisecond || took > 2100*time.Millisecond {
			t.Errorf("120 fetches of which 100 may begin at once took %s, want 2 s", took)
		}
		time.Sleep(time.Minute) // virtual
		leave, err := g.enter(t.Context(), "example.net")
		if err != nil {
			t.Fatal(err)
		}
		if leave(); len(g.lanes) != 1 {
			t.Errorf("%d lanes are left", len(g.lanes))
		}
	})
}
