package release_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// snapshot is the folder that `make snapshot` wrote, and its version.
type snapshot struct{ dir, version string }

// artifact is the path of a file of the release.
func (s snapshot) artifact(suffix string) string {
	return filepath.Join(s.dir, "callgate_"+s.version+"_"+suffix)
}

func readSnapshot(t *testing.T) snapshot {
	t.Helper()
	s := snapshot{dir: os.Getenv("CALLGATE_SNAPSHOT")}
	if s.dir == "" {
		t.Skip("CALLGATE_SNAPSHOT names no folder: make snapshot-check")
	}
	data, err := os.ReadFile(filepath.Join(s.dir, "metadata.json"))
	if err != nil {
		t.Fatal(err)
	}
	var metadata struct{ Version string }
	if err := json.Unmarshal(data, &metadata); err != nil || metadata.Version == "" {
		t.Fatalf("metadata.json: %v, version %q", err, metadata.Version)
	}
	s.version = metadata.Version
	return s
}

// run is what a program prints.
func run(t *testing.T, env []string, program string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, args...)
	c.Env = append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v: %s", program, args, err, out)
	}
	return string(out)
}

// prints checks that a program is the one of the snapshot.
func (s snapshot) prints(t *testing.T, env []string, program string, args ...string) {
	t.Helper()
	if out := run(t, env, program, args...); !strings.HasPrefix(out, "callgate "+s.version+" ") {
		t.Errorf("%s %q prints %q, want the version %s", program, args, out, s.version)
	}
}

// needs skips a test without a program.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("needs %s", p)
		}
	}
}

// TestSnapshot tries what `make snapshot` left.
func TestSnapshot(t *testing.T) {
	s := readSnapshot(t)
	t.Run("checksums", s.checksums)
	t.Run("sboms", s.sboms)
	t.Run("archives", s.archives)
	t.Run("deb", func(t *testing.T) {
		needs(t, "dpkg-deb")
		dir, file := t.TempDir(), s.artifact("linux_"+runtime.GOARCH+".deb")
		run(t, nil, "dpkg-deb", "--extract", file, dir)
		s.installed(t, dir)
		control := run(t, nil, "dpkg-deb", "--info", file)
		for _, want := range []string{"Package: callgate\n", "Architecture: " + runtime.GOARCH + "\n", "postinst", "prerm", "conffiles"} {
			if !strings.Contains(control, want) {
				t.Errorf("the package does not say %q: %s", want, control)
			}
		}
	})
	t.Run("rpm", func(t *testing.T) {
		needs(t, "rpm2cpio", "cpio")
		dir := t.TempDir()
		run(t, []string{"RPM=" + s.artifact("linux_"+runtime.GOARCH+".rpm"), "ROOT=" + dir}, "sh", "-c", `cd "$ROOT" && rpm2cpio "$RPM" | cpio --quiet -id`)
		s.installed(t, dir)
	})
	t.Run("formula", func(t *testing.T) {
		formula, err := os.ReadFile(filepath.Join(s.dir, "homebrew", "Formula", "callgate.rb"))
		if err != nil {
			t.Fatal(err)
		}
		for file, sum := range s.sums(t) {
			named := strings.Contains(string(formula), `"https://github.com/callgate/callgate/releases/download/`) && strings.Contains(string(formula), "/"+file+`"`) && strings.Contains(string(formula), `sha256 "`+sum+`"`)
			if want := strings.HasSuffix(file, ".tar.gz"); named != want {
				t.Errorf("the formula names %s with its checksum: %t, want %t", file, named, want)
			}
		}
	})
}

// archives: each has its files, and a program for its system and processor; the one for this
// machine runs.
func (s snapshot) archives(t *testing.T) {
	g := readRelease(t)
	for _, goos := range g.Builds[0].Goos {
		for _, goarch := range g.Builds[0].Goarch {
			suffix, program := ".tar.gz", "callgate"
			if goos == "windows" {
				suffix, program = ".zip", "callgate.exe"
			}
			files := unpack(t, s.artifact(goos+"_"+goarch+suffix))
			for _, name := range g.Archives[0].Files {
				if len(files[name]) == 0 {
					t.Errorf("%s %s: the archive has no %s", goos, goarch, name)
				}
			}
			info, err := buildinfo.Read(bytes.NewReader(files[program]))
			if err != nil {
				t.Errorf("%s %s: %v", goos, goarch, err)
				continue
			}
			for _, want := range []debug.BuildSetting{{Key: "GOOS", Value: goos}, {Key: "GOARCH", Value: goarch}, {Key: "CGO_ENABLED", Value: "0"}} {
				if !slices.Contains(info.Settings, want) {
					t.Errorf("%s %s: the program was not built with %s=%s", goos, goarch, want.Key, want.Value)
				}
			}
			if goos == runtime.GOOS && goarch == runtime.GOARCH {
				file := filepath.Join(t.TempDir(), program)
				if err := os.WriteFile(file, files[program], 0o700); err != nil {
					t.Fatal(err)
				}
				s.prints(t, nil, file, "--version")
			}
		}
	}
}

// unpack reads the files of an archive, a .tar.gz or a .zip.
func unpack(t *testing.T, archive string) map[string][]byte {
	t.Helper()
	data, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	keep := func(name string, r io.Reader) {
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatalf("%s: %s: %v", archive, name, err)
		}
		files[name] = content
	}
	if strings.HasSuffix(archive, ".zip") {
		z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatalf("%s: %v", archive, err)
		}
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				t.Fatalf("%s: %s: %v", archive, f.Name, err)
			}
			keep(f.Name, r)
		}
		return files
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%s: %v", archive, err)
	}
	for r := tar.NewReader(unzipped); ; {
		header, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatalf("%s: %v", archive, err)
		}
		keep(header.Name, r)
	}
}

// sums are the lines of checksums.txt, by file.
func (s snapshot) sums(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(data)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		sums[name] = sum
	}
	return sums
}

// checksums: they list every file of a release, and hold.
func (s snapshot) checksums(t *testing.T) {
	sums, want := s.sums(t), []string{}
	for _, goos := range readRelease(t).Builds[0].Goos {
		for _, goarch := range readRelease(t).Builds[0].Goarch {
			stem := "callgate_" + s.version + "_" + goos + "_" + goarch
			switch goos {
			case "windows":
				want = append(want, stem+".zip", stem+".cdx.json")
			case "linux":
				want = append(want, stem+".tar.gz", stem+".cdx.json", stem+".deb", stem+".rpm")
			default:
				want = append(want, stem+".tar.gz", stem+".cdx.json")
			}
		}
	}
	if got := slices.Sorted(maps.Keys(sums)); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("checksums.txt lists %q, want %q", got, want)
	}
	for name, sum := range sums {
		f, err := os.Open(filepath.Join(s.dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		f.Close()
		if got := hex.EncodeToString(h.Sum(nil)); err != nil || got != sum {
			t.Errorf("%s has the SHA-256 %s, checksums.txt says %s: %v", name, got, sum, err)
		}
	}
}

// sboms: each lists the modules that go.mod requires directly and the program is linked from.
func (s snapshot) sboms(t *testing.T) {
	for _, goos := range readRelease(t).Builds[0].Goos {
		for _, goarch := range readRelease(t).Builds[0].Goarch {
			data, err := os.ReadFile(s.artifact(goos + "_" + goarch + ".cdx.json"))
			var bom struct {
				BOMFormat  string `json:"bomFormat"`
				Components []struct{ Name, Version string }
			}
			if err != nil || json.Unmarshal(data, &bom) != nil || bom.BOMFormat != "CycloneDX" {
				t.Errorf("%s %s: %v, format %q", goos, goarch, err, bom.BOMFormat)
				continue
			}
			names := map[string]bool{}
			for _, c := range bom.Components {
				names[c.Name] = c.Version != ""
			}
			for _, module := range []string{"github.com/spf13/cobra", "github.com/gin-gonic/gin", "go.yaml.in/yaml/v4"} {
				if !names[module] {
					t.Errorf("%s %s: the SBOM of %d components has no %s with its version", goos, goarch, len(names), module)
				}
			}
		}
	}
}

// installed checks the files of a package, below a root.
func (s snapshot) installed(t *testing.T, dir string) {
	t.Helper()
	for _, c := range readRelease(t).Nfpms[0].Contents {
		if _, err := os.Stat(filepath.Join(dir, c.Dst)); err != nil {
			t.Errorf("the package has no %s", c.Dst)
		}
	}
	s.prints(t, nil, filepath.Join(dir, "usr", "bin", "callgate"), "version")
	if info, err := os.Stat(filepath.Join(dir, "etc", "callgate", "secrets")); err == nil && info.Mode().Perm() != 0o700 {
		t.Errorf("the folder of secrets has the mode %v", info.Mode())
	}
}
