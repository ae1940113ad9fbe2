package store

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

func TestStore(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	s := New(dir, 1<<20)
	if _, ok := s.Get(Digest([]byte("a"))); ok {
		t.Error("an empty store has something")
	}
	digest := s.Put([]byte("a"))
	if digest != "sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" {
		t.Errorf("digest is %s", digest)
	}
	s.Name("key", digest, "note")
	again := New(dir, 1<<20) // another process, or after a restart
	data, ok := again.Get(digest)
	if !ok || string(data) != "a" {
		t.Errorf("content is %q, %t", data, ok)
	}
	data, note, ok := again.Find("key")
	if !ok || string(data) != "a" || note != "note" {
		t.Errorf("named content is %q with note %q, %t", data, note, ok)
	}
	if _, _, ok := again.Find("other"); ok {
		t.Error("another key leads somewhere")
	}
	info, err := os.Stat(filepath.Join(dir, blobs))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder is %v, %v: others may read what was downloaded", info.Mode(), err)
	}
}

func TestStoreKeepsNothing(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*Store{"Nil": nil, "FolderIsAFile": New(file, 1<<20), "NoRoom": New(t.TempDir(), 0)} {
		digest := Digest([]byte("a"))
		if s != nil {
			s.Put([]byte("a"))
		}
		s.Name("key", digest, "")
		if _, ok := s.Get(digest); ok {
			t.Errorf("%s: has content", name)
		}
		if _, _, ok := s.Find("key"); ok {
			t.Errorf("%s: has a name", name)
		}
	}
}

func TestStoreHeals(t *testing.T) {
	t.Parallel()
	content := []byte("content that is long enough")
	digest := Digest(content)
	damages := map[string]func(file string) error{
		"Changed": func(file string) error { return os.WriteFile(file, bytes.ToUpper(content), 0o600) },
		"Cut":     func(file string) error { return os.Truncate(file, 5) },
		"Empty":   func(file string) error { return os.Truncate(file, 0) },
		"Longer":  func(file string) error { return os.WriteFile(file, append(content, 'x'), 0o600) },
	}
	for name, damage := range damages {
		s := New(t.TempDir(), 1<<20)
		s.Put(content)
		s.Name("key", digest, "")
		file, _ := s.blob(digest)
		if err := damage(file); err != nil {
			t.Fatal(err)
		}
		if _, ok := s.Get(digest); ok {
			t.Errorf("%s: damaged content is given", name)
		}
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("%s: damaged content stays: %v", name, err)
		}
		s.Put(content)
		if data, ok := s.Get(digest); !ok || !bytes.Equal(data, content) {
			t.Errorf("%s: does not heal", name)
		}

		if err := damage(s.nameOf("key")); err != nil {
			t.Fatal(err)
		}
		if _, _, ok := s.Find("key"); ok {
			t.Errorf("%s: a damaged name is believed", name)
		}
		s.Name("key", digest, "")
		if _, _, ok := s.Find("key"); !ok {
			t.Errorf("%s: a name does not heal", name)
		}
	}
}

// Put replaces damaged content although its file is there.
func TestStorePutMends(t *testing.T) {
	t.Parallel()
	s := New(t.TempDir(), 1<<20)
	digest := s.Put([]byte("a"))
	file, _ := s.blob(digest)
	if err := os.WriteFile(file, []byte("b"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Put([]byte("a"))
	if _, ok := s.Get(digest); !ok {
		t.Error("content is not there")
	}
}

func TestStoreIsBounded(t *testing.T) {
	t.Parallel()
	s := New(t.TempDir(), 3500)
	content := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 1000) }
	age := func(i int, d time.Duration) {
		file, _ := s.blob(Digest(content(i)))
		then := time.Now().Add(-d)
		if err := os.Chtimes(file, then, then); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		s.Put(content(i))
		age(i, time.Duration(10-i)*time.Minute)
	}
	if _, ok := s.Get(Digest(content(0))); !ok { // the oldest becomes the one used last
		t.Fatal("content is not there")
	}
	s.Put(content(3))
	for i, want := range []bool{true, false, true, true} {
		if _, ok := s.Get(Digest(content(i))); ok != want {
			t.Errorf("content %d is there: %t, want %t", i, ok, want)
		}
	}
	s.Put(make([]byte, 4000))
	if _, ok := s.Get(Digest(make([]byte, 4000))); ok {
		t.Error("content that has no room is there")
	}
}

func TestStoreRemovesLeftovers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := New(dir, 1<<20)
	s.Put([]byte("a"))
	for name, age := range map[string]time.Duration{"old": 2 * leftover, "fresh": leftover / 2} {
		file := filepath.Join(dir, temporary, name)
		if err := os.WriteFile(file, []byte("torn"), 0o600); err != nil {
			t.Fatal(err)
		}
		then := time.Now().Add(-age)
		if err := os.Chtimes(file, then, then); err != nil {
			t.Fatal(err)
		}
	}
	s.Put([]byte("b"))
	if left := s.list(temporary); len(left) != 1 || filepath.Base(left[0].path) != "fresh" {
		t.Errorf("left are %v", left)
	}
}

func TestStoreNamesNoFilesOfOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := New(filepath.Join(dir, "store"), 1<<20)
	for _, digest := range []string{"", "sha256:", "sha256:../../secret", "sha512:" + Digest(nil)[7:], "sha256:" + Digest([]byte("x"))[8:] + "/"} {
		if _, ok := s.Get(digest); ok {
			t.Errorf("%q is given", digest)
		}
	}
}

// worker is set for the processes that TestStoreOfSeveralProcesses starts.
const worker = "MOTHERSHIP_STORE_WORKER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(worker); dir != "" {
		os.Exit(work(dir))
	}
	os.Exit(m.Run())
}

// work puts and gets the same contents as all others, in a store that has no room for all of them.
func work(dir string) int {
	s := New(dir, 20_000)
	for round := range 8 {
		for i := range 30 {
			content := bytes.Repeat([]byte(fmt.Sprint(i, " ")), 300)
			digest := s.Put(content)
			s.Name(fmt.Sprint("key", i), digest, fmt.Sprint(i))
			if data, ok := s.Get(digest); ok && !bytes.Equal(data, content) {
				return 1
			}
			if data, note, ok := s.Find(fmt.Sprint("key", round%30)); ok && Digest(data) != Digest(bytes.Repeat([]byte(note+" "), 300)) {
				return 2
			}
		}
	}
	return 0
}

func TestStoreOfSeveralProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Env = append(os.Environ(), worker+"="+dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("a process: %v\n%s", err, out)
			}
		})
	}
	all.Wait()
	s := New(dir, 20_000)
	s.Put([]byte("one more, to make room"))
	total := int64(0)
	for _, f := range append(s.list(blobs), s.list(names)...) {
		total += f.size
	}
	if total == 0 || total > 20_000 || len(s.list(temporary)) != 0 {
		t.Errorf("%d bytes are kept, %d temporary files", total, len(s.list(temporary)))
	}
}
