package configs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/callgate/callgate/internal/wholefile"
)

// KeptDir is the folder, below data_dir, with the configurations that were served: each once, as
// DIGEST.json, which has the bytes of its files and no secret.
const KeptDir = "configs"

// kept is a configuration as it is kept.
type kept struct {
	Digest string     `json:"digest"`
	Main   string     `json:"main"` // the whole name of the main file
	Files  []keptFile `json:"files"`
}

// keptFile is one of its files. Data has the bytes where they are UTF-8, else Base64.
type keptFile struct {
	Name     string `json:"name"`     // whole, as it was on the machine that served it
	Relative string `json:"relative"` // by which it enters the digest
	Data     string `json:"data,omitempty"`
	Base64   []byte `json:"data_b64,omitempty"`
}

// Keep writes the configuration to its data folder, unless it is there; the built-in one is
// not kept. The file's time is when the configuration last took effect.
func (c *Config) Keep() error {
	if c.Embedded() {
		return nil
	}
	dir := filepath.Join(c.DataDir, KeptDir)
	file := filepath.Join(dir, c.Digest+".json")
	if _, err := os.Stat(file); err == nil {
		now := time.Now()
		return os.Chtimes(file, now, now)
	}
	k := kept{Digest: c.Digest}
	for _, f := range c.contents {
		name, err := filepath.Abs(f.name)
		if err != nil {
			return err
		}
		one := keptFile{Name: name, Relative: f.relative, Base64: f.data}
		if utf8.Valid(f.data) {
			one.Data, one.Base64 = string(f.data), nil
		}
		k.Files = append(k.Files, one)
	}
	k.Main = k.Files[0].Name
	data, err := json.MarshalIndent(k, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return wholefile.Replace(file, append(data, '\n'))
}

// IsDigest reports whether a text can be the digest of a configuration, or the beginning of one.
func IsDigest(text string) bool {
	return len(text) >= 12 && len(text) <= 64 && strings.Trim(text, "0123456789abcdef") == ""
}

// LoadKept loads a configuration that was kept in a data folder, by its digest or the beginning
// of that. The files are checked: other bytes have another digest. Secrets are those of
// now, at the places that it names. Its tests are not run: see LoadUntested. The error is
// fs.ErrNotExist where it is not kept.
func LoadKept(dataDir, digest string) (*Config, error) {
	if !IsDigest(digest) {
		return nil, fmt.Errorf("found %q; expected a digest of at least 12 hexadecimal digits", digest)
	}
	dir := filepath.Join(dataDir, KeptDir)
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), digest) && strings.HasSuffix(e.Name(), ".json") {
			found = append(found, filepath.Join(dir, e.Name()))
		}
	}
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("no configuration of the digest %s is kept in %s; it was not served from there, or was removed since (`callgate help policy replay` says when): %w", digest, dir, fs.ErrNotExist)
	case len(found) > 1:
		return nil, fmt.Errorf("%d configurations are kept whose digests begin with %s; expected more of it", len(found), digest)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		return nil, err
	}
	var k kept
	if err := json.Unmarshal(data, &k); err != nil {
		return nil, fmt.Errorf("%s: found no kept configuration: %w", found[0], err)
	}
	files := keptFiles{}
	var contents []content
	for _, f := range k.Files {
		if f.Base64 == nil {
			f.Base64 = []byte(f.Data)
		}
		files[f.Name] = f.Base64
		contents = append(contents, content{f.Name, f.Relative, f.Base64})
	}
	if name := strings.TrimSuffix(filepath.Base(found[0]), ".json"); digestOf(contents) != name {
		return nil, fmt.Errorf("%s: found files of another digest; it was altered", found[0])
	}
	c, err := (&loader{files: files, untested: true}).load(k.Main, "")
	if err != nil {
		return nil, fmt.Errorf("%s does not load now: %w", found[0], err)
	}
	if c.Digest != digestOf(contents) {
		return nil, fmt.Errorf("%s: found files that do not belong to it", found[0])
	}
	return c, nil
}

// keptFiles are the files of a configuration that was kept.
type keptFiles map[string][]byte

// ReadFile returns the bytes of a file.
func (k keptFiles) ReadFile(name string) ([]byte, error) {
	data, has := k[filepath.Clean(name)]
	if !has {
		return nil, fs.ErrNotExist
	}
	return data, nil
}

// Glob returns the names that match a pattern, sorted.
func (k keptFiles) Glob(pattern string) ([]string, error) {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(k)) {
		if matches, err := filepath.Match(pattern, name); err != nil {
			return nil, err
		} else if matches {
			found = append(found, name)
		}
	}
	return found, nil
}
