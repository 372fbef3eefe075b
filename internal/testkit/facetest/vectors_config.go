package facetest

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/corpora"
)

// Vectors is the configuration of the vectors. All tests of a package share it, so none
// may change it.
func Vectors(t testing.TB) *configs.Config {
	t.Helper()
	c, err := vectors()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var vectors = sync.OnceValues(func() (*configs.Config, error) {
	return configs.Load(corpora.Testdata("vectors", "config", "callgate.yaml"))
})

// Config is a configuration of some files, each without its "# end". The defaults have one
// agent, which may use every tool of tools.yaml.
func Config(t testing.TB, files map[string]string) *configs.Config {
	t.Helper()
	all := map[string]string{
		"callgate.yaml":   "registry: {files: [tools.yaml]}\n",
		"policy.csv":      "p, Analyst, *, *, , allow\n",
		"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst]}}}}\n",
		"limits.yaml":     "{}\n",
	}
	for name, text := range files {
		all[name] = text
	}
	dir := t.TempDir()
	for name, text := range all {
		if filepath.Ext(name) != ".json" { // whose end shows
			text += "# end\n"
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return load(t, filepath.Join(dir, "callgate.yaml"))
}

func load(t testing.TB, path string) *configs.Config {
	t.Helper()
	c, err := configs.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
