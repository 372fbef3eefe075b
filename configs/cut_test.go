package configs

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/configtest"
)

// TestCutFiles cuts each file of the base at each of its bytes, as a save that
// was interrupted would: nothing shorter may load, but for the final newline,
// which says nothing.
func TestCutFiles(t *testing.T) {
	t.Parallel()
	whole, err := LoadFrom(configtest.InMemory(t), "callgate.yaml", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(configtest.InMemory(t))) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := configtest.InMemory(t)
			data := files[name]
			for cut := range len(data) {
				if testing.Short() && cut%3 != 0 && cut < len(data)-100 {
					continue
				}
				files[name] = data[:cut]
				c, err := LoadFrom(files, "callgate.yaml", "")
				if err == nil && data[cut:] == "\n" {
					same(t, c, whole)
				} else if err == nil {
					t.Errorf("the first %d of %d bytes load", cut, len(data))
				} else if data[cut:] == "\n" {
					t.Errorf("without its final newline: %v", err)
				}
			}
		})
	}
}

// TestCutCRLF does so for line ends of two bytes.
func TestCutCRLF(t *testing.T) {
	files := configtest.InMemory(t)
	data := strings.ReplaceAll(files["limits.yaml"], "\n", "\r\n")
	for cut := range len(data) {
		files["limits.yaml"] = data[:cut]
		if _, err := LoadFrom(files, "callgate.yaml", ""); err == nil && data[cut:] != "\r\n" {
			t.Errorf("the first %d of %d bytes load", cut, len(data))
		}
	}
}

// TestDigestKnowsEveryByte changes each byte of each file: what still loads has
// another digest.
func TestDigestKnowsEveryByte(t *testing.T) {
	whole, err := LoadFrom(configtest.InMemory(t), "callgate.yaml", "")
	if err != nil {
		t.Fatal(err)
	}
	step := 1
	if testing.Short() {
		step = 5 // lines and words begin at every remainder
	}
	for _, name := range slices.Sorted(maps.Keys(configtest.InMemory(t))) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := configtest.InMemory(t)
			data, loaded := files[name], 0
			for at := 0; at < len(data); at += step {
				changed := []byte(data)
				if changed[at] == '5' {
					changed[at] = '6'
				} else {
					changed[at] = '5'
				}
				files[name] = string(changed)
				c, err := LoadFrom(files, "callgate.yaml", "")
				if err != nil {
					continue
				}
				loaded++
				if c.Digest == whole.Digest {
					t.Errorf("byte %d does not enter the digest", at)
				}
			}
			if loaded == 0 {
				t.Error("no change loads, so nothing was tested")
			}
		})
	}
}

// TestDigestKnowsNames moves bytes between names: equal bytes under other names
// are another configuration.
func TestDigestKnowsNames(t *testing.T) {
	files := configtest.InMemory(t)
	one, err := LoadFrom(files, "callgate.yaml", "")
	if err != nil {
		t.Fatal(err)
	}
	files["tools/wab.yaml"] = files["tools/web.yaml"]
	delete(files, "tools/web.yaml")
	other, err := LoadFrom(files, "callgate.yaml", "")
	if err != nil {
		t.Fatal(err)
	}
	if one.Digest == other.Digest {
		t.Error("the name of a file does not enter the digest")
	}
}

// same compares what two configurations say, whatever their bytes.
func same(t *testing.T, found, expected *Config) {
	t.Helper()
	for what, pair := range map[string][2]any{
		"settings":   {found.Settings, expected.Settings},
		"workspaces": {found.Workspaces, expected.Workspaces},
		"limits":     {found.Limits, expected.Limits},
		"principals": {found.Principals, expected.Principals},
		"agents":     {found.Agents, expected.Agents},
		"tools":      {describe(found), describe(expected)},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s: found %+v; expected %+v", what, pair[0], pair[1])
		}
	}
}

// describe is all that a configuration says of its tools.
func describe(c *Config) []any {
	var all []any
	for _, e := range c.Tools.Entries() {
		all = append(all, e.Name(), e.Version(), e.Description(), e.Kind(), e.Effect(), string(e.ClosedSchema()), string(e.OutputSchema()), e.Run())
	}
	return all
}
