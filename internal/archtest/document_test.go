package archtest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// links finds the targets of links in Markdown.
var links = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	walk(t, ".md", func(file string, content []byte) {
		for _, link := range links.FindAllSubmatch(content, -1) {
			target, _, _ := strings.Cut(string(link[1]), "#")
			if target == "" || strings.Contains(target, "://") {
				continue
			}
			target = path.Join(path.Dir(file), target)
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s, which does not exist", file, target)
			}
		}
	})
}

func TestTheMapHasEveryPackage(t *testing.T) {
	t.Parallel()
	text := read(t, "ARCHITECTURE.md")
	for _, p := range append(list(t, ".", "./..."), list(t, "api", "./...")...) {
		if !strings.Contains(text, "`"+p.name()+"`") {
			t.Errorf("ARCHITECTURE.md does not say what `%s` is", p.name())
		}
	}
}

func TestDecisionsAreIndexed(t *testing.T) {
	t.Parallel()
	index := read(t, "docs/decisions/README.md")
	records, err := filepath.Glob(filepath.Join(root, "docs/decisions/[0-9]*.md"))
	if err != nil || len(records) == 0 {
		t.Fatalf("finding decisions: %d found, %v", len(records), err)
	}
	for _, record := range records {
		if !strings.Contains(index, "("+filepath.Base(record)+")") {
			t.Errorf("docs/decisions/README.md has no row for %s", filepath.Base(record))
		}
	}
}
