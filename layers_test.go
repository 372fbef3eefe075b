package callgate_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/callgate/callgate/"

// layers are the folders from the lowest layer to the highest. A package may import those of lower
// layers and those of its own folder, so the folders of one layer do not know each other.
var layers = [][]string{
	{"refusal", "internal"},
	{"tool", "parser", "wrapper", "gateway/hook/window", "history"},
	{"internal/rawjson"},
	{"internal/jsonrpc", "internal/cli", "internal/program", "internal/refuse", "internal/sse", "internal/acp"},
	{"internal/outbound", "configs/document"},
	{"gateway/hook", "registry", "policy", "identity", "telemetry", "store", "ratelimit", "engine", "upstream"},
	{"audit", "gateway/elicitation"},
	{"gateway"},
	{"policy/lab"},
	{"configs", "gateway/runs", "gateway/faces/acpreport"},
	{"gateway/turns"},
	{"gateway/faces"},
	{"app"},
	{"cmd"},
	{"internal/testkit", "test", "deploy"},
}

// confined has the packages that may import a module of others. A module that is missing is a new
// dependency: docs/design.md says why each is there.
var confined = map[string][]string{
	"cel.dev/cel-go":                      {"policy/condition"},
	"code.dny.dev/ssrf":                   {"internal/outbound"},
	"github.com/casbin/casbin":            {"policy"},
	"github.com/cenkalti/backoff":         {"app/notices", "audit", "engine/mcp", "gateway/journal", "internal/outbound", "ratelimit/redislimit", "telemetry", "upstream"},
	"github.com/gin-gonic/gin":            {"gateway/server", "gateway/faces", "gateway/runs", "gateway/turns", "cmd/callgate"},
	"github.com/go-jose/go-jose":          {"identity"},
	"github.com/go-json-experiment/json":  {"configs/document", "internal/rawjson"},
	"github.com/golang-jwt/jwt":           {"identity"},
	"github.com/kaptinlin/jsonschema":     {"registry/schema"},
	"github.com/prometheus/client_golang": {"telemetry"},
	"github.com/redis/go-redis":           {"internal/redisconn"},
	"github.com/rogpeppe/go-internal":     {"cmd/callgate"},
	"github.com/sony/gobreaker":           {"internal/outbound"},
	"github.com/spf13/cobra":              {"cmd/callgate"},
	"go.etcd.io/bbolt":                    {"store/boltstore"},
	"go.opentelemetry.io":                 {"telemetry"},
	"go.yaml.in/yaml":                     {"configs"},
	"golang.org/x/oauth2":                 {"internal/outbound"},
	"golang.org/x/term":                   {"internal/terminal"},
	"golang.org/x/text":                   {"policy/boundary"},
	"golang.org/x/time":                   {"gateway/server", "ratelimit"},
	"google.golang.org/protobuf":          {"telemetry"},
}

// within reports whether a path is that of a folder or below it.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

// layerOf returns the layer of a package and the listed folder that it belongs to, the longest that fits.
func layerOf(pkg string) (layer int, folder string) {
	layer = -1
	for i, folders := range layers {
		for _, f := range folders {
			if within(pkg, f) && len(f) > len(folder) {
				layer, folder = i, f
			}
		}
	}
	return layer, folder
}

func TestLayers(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, module := os.Stat(filepath.Join(path, "go.mod"))
			if path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || module == nil) {
				return filepath.SkipDir
			}
			return nil
		}
		pkg := filepath.ToSlash(filepath.Dir(path))
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || within(pkg, "internal/testkit") {
			return nil
		}
		layer, folder := layerOf(pkg)
		if layer < 0 {
			t.Errorf("%s is in no layer", path)
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imported := strings.Trim(spec.Path.Value, `"`)
			if own, ok := strings.CutPrefix(imported, module); ok {
				if below, of := layerOf(own); below < 0 || below > layer || below == layer && of != folder {
					t.Errorf("%s imports %s, which is not in a lower layer", path, own)
				}
				continue
			}
			if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
				continue // the standard library
			}
			allowed := false
			for foreign, packages := range confined {
				if within(imported, foreign) && slices.ContainsFunc(packages, func(f string) bool { return within(pkg, f) }) {
					allowed = true
				}
			}
			if !allowed {
				t.Errorf("%s imports %s, which %s may not", path, imported, pkg)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
