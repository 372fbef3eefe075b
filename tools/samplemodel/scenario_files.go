package main

import (
	"embed"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/internal/oserr"
)

//go:embed scenarios/*.json
var bundled embed.FS

// maxScenario bounds a scenario's file.
const maxScenario = 1 << 20

const suffix = ".json"

// repertoire is every scenario by name, and the one for all other names. It is
// read only.
type repertoire struct {
	scenarios map[string]*scenario
	other     *scenario
}

// newRepertoire reads the bundled scenarios, and the file that other names, if
// it ends in .json; else it names a bundled one.
func newRepertoire(other string) (*repertoire, error) {
	r := &repertoire{scenarios: map[string]*scenario{}}
	entries, err := bundled.ReadDir("scenarios")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		data, err := bundled.ReadFile(path.Join("scenarios", e.Name()))
		if err != nil {
			return nil, err
		}
		s, err := readScenario(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		r.scenarios[strings.TrimSuffix(e.Name(), suffix)] = s
	}
	if !strings.HasSuffix(other, suffix) {
		if r.other = r.scenarios[other]; r.other == nil {
			return nil, fmt.Errorf("found the scenario %q; expected a file that ends in %s, or one of %s", other, suffix,
				strings.Join(r.names(), ", "))
		}
		return r, nil
	}
	data, err := readBounded(other)
	if err != nil {
		return nil, oserr.Reason(err)
	}
	r.other, err = readScenario(data)
	return r, err
}

func readBounded(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxScenario+1))
	if err == nil && len(data) > maxScenario {
		return nil, fmt.Errorf("found a file over %d bytes; expected at most that", maxScenario)
	}
	return data, err
}

// find returns the scenario that a model plays.
func (r *repertoire) find(model string) *scenario {
	if s := r.scenarios[model]; s != nil {
		return s
	}
	return r.other
}

// names are the bundled scenarios', in order.
func (r *repertoire) names() []string { return slices.Sorted(maps.Keys(r.scenarios)) }

// list shows what there is.
func (r *repertoire) list(w io.Writer) {
	for _, name := range r.names() {
		fmt.Fprintf(w, "%-10s %s\n", name, r.scenarios[name].About)
	}
}

// model answers requests of every API.
type model struct {
	repertoire *repertoire
	now        func() time.Time
}
