package configs

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/callgate/callgate/internal/testkit/configtest"
)

// TestFilesChangedSince: files that are changed, new and gone are named; those of equal bytes are not.
func TestFilesChangedSince(t *testing.T) {
	dir := t.TempDir()
	load := func(changed map[string]string) *Config {
		c, err := Load(configtest.Write(t, dir, configtest.With(t, changed)))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	before := load(nil)
	if files := load(nil).FilesChangedSince(before); len(files) > 0 {
		t.Errorf("nothing has changed; found %q", files)
	}
	const extra = "tools: [{name: extra, run: {type: client}, input_schema: {type: object}}]\n# end\n"
	after := load(map[string]string{"limits.yaml": "replicas: 9\n# end\n", "tools/extra.yaml": extra})
	want := []string{filepath.Join(dir, "limits.yaml"), filepath.Join(dir, "tools", "extra.yaml")}
	for _, files := range [][]string{after.FilesChangedSince(before), before.FilesChangedSince(after)} {
		if !slices.Equal(files, want) {
			t.Errorf("found %q; expected %q", files, want)
		}
	}
}
