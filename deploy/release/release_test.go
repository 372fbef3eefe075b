// Package release_test checks that the files of a release fit each other, and, by `make
// snapshot-check`, what a release has.
package release_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

const root = "../.."

// goreleaser is what these tests need of .goreleaser.yaml.
type goreleaser struct {
	Builds []struct {
		Main         string
		Goos, Goarch []string
		Env, Tags    []string
		Flags        []string
		Gcflags      []string
	}
	Nfpms []struct {
		Formats  []string
		Contents []struct{ Src, Dst, Type string }
		Scripts  map[string]string
	}
	Archives []struct {
		NameTemplate string `yaml:"name_template"`
		Files        []string
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func readRelease(t *testing.T) goreleaser {
	t.Helper()
	var g goreleaser
	if err := yaml.Unmarshal(read(t, ".goreleaser.yaml"), &g); err != nil {
		t.Fatal(err)
	}
	if len(g.Builds) != 1 || len(g.Nfpms) != 1 || len(g.Archives) != 1 {
		t.Fatalf("found %d builds, %d packages, %d archives; want one of each", len(g.Builds), len(g.Nfpms), len(g.Archives))
	}
	return g
}

// TestReleaseBuild: the release is built as `make build` builds.
func TestReleaseBuild(t *testing.T) {
	b := readRelease(t).Builds[0]
	if want := "CGO_ENABLED=0 $(GO) build -trimpath -tags $(TAGS) -gcflags=all=-dwarf=false -ldflags '-s -w'"; !bytes.Contains(read(t, "Makefile"), []byte(want)) ||
		!slices.Equal(b.Env, []string{"CGO_ENABLED=0"}) || !slices.Equal(b.Flags, []string{"-trimpath"}) || !slices.Equal(b.Tags, []string{"nomsgpack"}) ||
		!slices.Equal(b.Gcflags, []string{"all=-dwarf=false"}) {
		t.Errorf("the release is built with %q %q %q %q; make build with %s", b.Env, b.Flags, b.Tags, b.Gcflags, want)
	}
}

// TestReleaseFiles: everything that the packages hold is there, and they hold the whole
// configuration of the service.
func TestReleaseFiles(t *testing.T) {
	g := readRelease(t)
	packed := map[string]string{}
	sources := slices.Clone(g.Archives[0].Files)
	for _, c := range g.Nfpms[0].Contents {
		if c.Src != "" {
			packed[c.Src] = c.Dst
			sources = append(sources, c.Src)
		}
	}
	for _, script := range g.Nfpms[0].Scripts {
		sources = append(sources, script)
		if out, err := exec.CommandContext(t.Context(), "sh", "-n", filepath.Join(root, script)).CombinedOutput(); err != nil {
			t.Errorf("%s is no script: %s", script, out)
		}
	}
	for _, s := range sources {
		if _, err := os.Stat(filepath.Join(root, s)); err != nil {
			t.Errorf("%s is not there", s)
		}
	}
	service := filepath.Join(root, "deploy", "systemd")
	if err := filepath.WalkDir(service, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		source := filepath.ToSlash(strings.TrimPrefix(file, root+string(filepath.Separator)))
		want := "/etc/callgate/" + strings.TrimPrefix(source, "deploy/systemd/etc/")
		if strings.HasSuffix(source, ".service") {
			want = "/usr/lib/systemd/system/" + filepath.Base(source)
		}
		if packed[source] != want {
			t.Errorf("%s is packed as %q, want %q", source, packed[source], want)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestGoInstall: go install of a version refuses a module that replaces another.
func TestGoInstall(t *testing.T) {
	if found := regexp.MustCompile(`(?m)^(replace|exclude)\b.*`).Find(read(t, "go.mod")); found != nil {
		t.Errorf("go.mod has the line %q, with which go install fails", found)
	}
}

// TestInstallPages: pages and help name no way to install that does not exist. Nothing has been
// released, and a name that somebody else can take in a registry would run their code.
func TestInstallPages(t *testing.T) {
	elsewhere := regexp.MustCompile(`(npx|bunx|pnpx|pnpm dlx|npm (i|install|exec|x)|yarn dlx|brew install|apt(-get)? install|pipx? install|uvx|go (install|run)|docker (run|pull)) +(-\S+ +)*(\S*/)?callgate(@\S*|/tap\S*)?(\s|\x60|$)`)
	local := regexp.MustCompile(`go (install|run) +(-\S+ +)*\./`)
	if err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		name := d.Name()
		if d.IsDir() && (name == "node_modules" || name == "dist" || name == "testdata" || strings.HasPrefix(name, ".") && name != ".." && name != ".github") {
			return fs.SkipDir
		}
		rel, _ := filepath.Rel(root, file)
		if err != nil || d.IsDir() || rel == filepath.Join("docs", "releasing.md") || !slices.Contains([]string{".md", ".html", ".tmpl", ".txt", ".go", ".json"}, filepath.Ext(name)) {
			return err
		}
		for line := range strings.Lines(string(read(t, rel))) {
			if found := elsewhere.FindString(line); found != "" && !local.MatchString(found) {
				t.Errorf("%s tells a reader to run %q, which is not ours until a release exists", rel, strings.TrimSpace(found))
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
