package boundary

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// tree builds the directories of testdata/boundary.txt.
func tree(t testing.TB) (p Lists, root, other, out string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, other, out = filepath.Join(base, "alpha"), filepath.Join(base, "other"), filepath.Join(base, "outside")
	for _, dir := range []string{root + "/docs/deep", other, out, root + "bet"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{root + "/docs/a.md", root + "/100%", other + "/b.md", out + "/secret", root + "bet/secret"} {
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"in": "docs", "abs": root + "/docs", "out": out, "up": "..", "file": out + "/secret", "loop": "loop", "ping": "pong", "pong": "ping",
		"other": other, "dangling": out + "/new", "hop": "out", "deep": "docs/deep",
	} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	return Lists{
		Roots: []string{root, other}, Hosts: []string{"Example.com", "*.example.ORG", "192.0.2.7", "2001:db8::1"},
		Resources: map[string][]string{"customer": {"c-1*", "vip"}, "nothing": {}}, Workspace: "acme", Project: "alpha",
	}, root, other, out
}

func TestBoundaryCorpus(t *testing.T) {
	p, root, other, out := tree(t)
	data, err := os.ReadFile(filepath.Join("testdata", "boundary.txt"))
	if err != nil {
		t.Fatal(err)
	}
	escapes, total := 0, 0
	for i, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.Split(line, "\t")
		if len(parts) != 3 {
			t.Fatalf("line %d: %d parts", i+1, len(parts))
		}
		value, err := strconv.Unquote(strings.NewReplacer("{root}", root, "{other}", other, "{out}", out).Replace(parts[2]))
		if err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		total++
		err = p.Within(parts[0], value)
		switch parts[1] {
		case "inside":
			if err != nil {
				t.Errorf("line %d: %s %q is refused: %v", i+1, parts[0], value, err)
			}
		case "outside":
			escapes++
			var outside *OutsideError
			if !errors.As(err, &outside) || outside.Kind != parts[0] || outside.Reason == "" {
				t.Errorf("line %d: %s %q: %v", i+1, parts[0], value, err)
			} else if strings.Contains(outside.Reason, filepath.Dir(root)) || len(value) > 10 && strings.Contains(outside.Reason, value) {
				t.Errorf("line %d: the reason says too much: %s", i+1, outside.Reason)
			}
		default:
			t.Fatalf("line %d: verdict %q", i+1, parts[1])
		}
	}
	if escapes < 80 {
		t.Errorf("only %d escapes of %d cases", escapes, total)
	}
	t.Log(total, "cases,", escapes, "escapes")
}

// Without a list everything is refused, a star is no empty value, and an unbound project is nowhere.
func TestMissingListsRefuse(t *testing.T) {
	var p Lists
	for _, kind := range []string{KindPath, KindURL, KindHost, KindWorkspace, KindProject, "customer", ""} {
		for _, value := range []string{"", ".", "a", "/", "https://example.com", "example.com", "acme", "*"} {
			if p.Within(kind, value) == nil {
				t.Errorf("%s %q is within nothing", kind, value)
			}
		}
	}
	p.Resources = map[string][]string{"any": {"*"}}
	if p.Within("any", "x") != nil || p.Within("any", "") == nil {
		t.Error("a star is not everything but the empty value")
	}
}

// Roots that do not exist, or are links themselves, work; what the place says
// can be opened below its root.
func TestResolve(t *testing.T) {
	_, root, other, _ := tree(t)
	link := filepath.Join(filepath.Dir(root), "link")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		roots []string
		value string
		want  string // "" refused
	}{
		{[]string{"/srv/not/there"}, "docs/a.md", "/srv/not/there|docs/a.md"},
		{[]string{"/srv/not/there"}, "/srv/not/there/docs/../a.md", "/srv/not/there|a.md"},
		{[]string{"/srv/not/there"}, "/srv/not/therefore/a.md", ""},
		{[]string{"/srv/not/there"}, "/srv/not/there/../else/a.md", ""},
		{[]string{link}, "docs/a.md", root + "|docs/a.md"},
		{[]string{link}, link + "/in/a.md", root + "|docs/a.md"},
		{[]string{link}, root + "/docs/a.md", ""}, // written outside of the root
		{[]string{root}, "in", root + "|docs"},
		{[]string{root}, ".", root + "|."},
		{[]string{root}, "other/b.md", ""},
		{[]string{root, other}, "other/b.md", other + "|b.md"},
		{[]string{"/"}, "/etc/../srv", "/|srv"},
		{[]string{"/"}, "x", "/|x"},
		{[]string{"relative"}, ".", ""},
		{[]string{""}, "x", ""},
		{[]string{root}, strings.Repeat("a/", 3000), ""},
		{[]string{root}, strings.Repeat("a", 256), ""},
		{[]string{root}, strings.Repeat("a", 255), root + "|" + strings.Repeat("a", 255)},
		{[]string{root}, strings.Repeat("./", 1500) + "docs", root + "|docs"},
	} {
		place, err := Lists{Roots: c.roots}.Resolve(c.value)
		got := ""
		if err == nil {
			got = place.Root + "|" + place.Name
			if place.Path() != filepath.Join(place.Root, place.Name) {
				t.Errorf("path %s", place.Path())
			}
		}
		if got != c.want {
			t.Errorf("%v %.60q: %q (%v), want %q", c.roots, c.value, got, err, c.want)
		}
	}
	place, err := Lists{Roots: []string{link}}.Resolve("in/a.md")
	if err != nil {
		t.Fatal(err)
	}
	opened, err := os.OpenRoot(place.Root)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if _, err := opened.Stat(place.Name); err != nil {
		t.Error(err)
	}
}

// A directory that may not be searched is refused, not taken for absent.
func TestUnreadableIsRefused(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("skipped: file permissions do not bind root")
	}
	p, root, _, _ := tree(t)
	if err := os.Chmod(filepath.Join(root, "docs"), 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Join(root, "docs"), 0o755)
	if p.Within(KindPath, "docs/a.md") == nil {
		t.Error("a path through a closed directory is accepted")
	}
}

// A value that Within accepts is inside by an independent check.
func FuzzWithin(f *testing.F) {
	data, err := os.ReadFile(filepath.Join("testdata", "boundary.txt"))
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		if parts := strings.Split(line, "\t"); len(parts) == 3 {
			if value, err := strconv.Unquote(parts[2]); err == nil {
				f.Add(value)
			}
		}
	}
	p, root, other, _ := tree(f)
	f.Fuzz(func(t *testing.T, value string) {
		value = strings.NewReplacer("{root}", root, "{other}", other).Replace(value)
		if place, err := p.Resolve(value); err == nil {
			checkPath(t, value, place, root, other)
		}
		if p.Within(KindHost, value) == nil && !listed(value) {
			t.Errorf("host %q", value)
		}
		if p.Within(KindURL, value) == nil {
			u, err := url.Parse(value)
			if err != nil || u.User != nil || (u.Scheme != "http" && u.Scheme != "https") || !listed(u.Hostname()) || strings.ContainsAny(value, "\\ \t\r\n") {
				t.Errorf("URL %q: %v %v", value, u, err)
			}
		}
	})
}

// checkPath opens the accepted path through the library's own walk of links.
func checkPath(t *testing.T, value string, place Place, roots ...string) {
	t.Helper()
	written := value
	if !filepath.IsAbs(written) {
		written = roots[0] + "/" + written
	}
	for _, path := range []string{place.Path(), filepath.Clean(written), written} {
		// The longest part that exists, with the rest behind it.
		rest := ""
		for {
			actual, err := filepath.EvalSymlinks(path)
			if err == nil {
				path = filepath.Join(actual, rest)
				break
			}
			if _, err := os.Lstat(path); err == nil {
				t.Errorf("path %q: %s is there and leads nowhere", value, path)
				return
			}
			cut := strings.LastIndexByte(strings.TrimRight(path, "/"), '/')
			if cut <= 0 {
				path = filepath.Join("/", rest)
				break
			}
			path, rest = path[:cut], path[cut:]+rest
		}
		ok := false
		for _, root := range roots {
			if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
				ok = true
			}
		}
		if !ok {
			t.Errorf("path %q is accepted and leads to %s", value, path)
		}
	}
}

// listed states the list of hosts in tree anew.
func listed(host string) bool {
	host = strings.ToLower(host)
	if a, err := netip.ParseAddr(host); err == nil {
		return a.String() == host && (host == "192.0.2.7" || host == "2001:db8::1")
	}
	if host == "example.com" {
		return true
	}
	name, found := strings.CutSuffix(host, ".example.org")
	return found && name != "" && !strings.HasPrefix(name, ".") && !strings.Contains(name, "..") &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
}

func TestDeepLinks(t *testing.T) {
	root := t.TempDir()
	for i := range 60 {
		if err := os.Symlink(fmt.Sprintf("l%d", i+1), filepath.Join(root, fmt.Sprintf("l%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	p := Lists{Roots: []string{root}}
	if p.Within(KindPath, "l30") != nil || p.Within(KindPath, "l0") == nil {
		t.Error("thirty links are followed and sixty are not")
	}
}
