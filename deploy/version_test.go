package deploy_test

import (
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// TestVersionIsLinked: what .goreleaser.yaml and the Dockerfile tell the linker is what the
// programs of these tests were linked with, and the command and the flag print it.
func TestVersionIsLinked(t *testing.T) {
	fill := strings.NewReplacer("{{.Version}}", "1.2.3", "{{.FullCommit}}", "abcdef", "{{.CommitDate}}", "2026-11-24T10:00:00Z",
		"${VERSION}", "1.2.3", "${COMMIT}", "abcdef", "${DATE}", "2026-11-24T10:00:00Z")
	for file, flags := range map[string]*regexp.Regexp{
		"../.goreleaser.yaml": regexp.MustCompile(`(?m)^    ldflags: \["([^"]*)"\]$`),
		"../Dockerfile":       regexp.MustCompile(`(?m)^RUN .* -ldflags "([^"]*)" `),
	} {
		found := flags.FindStringSubmatch(text(t, file))
		if found == nil || fill.Replace(found[1]) != linked {
			t.Errorf("%s tells the linker %q, want %q", file, found, linked)
		}
	}
	want := "callgate 1.2.3 abcdef 2026-11-24T10:00:00Z " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH + "\n"
	for _, word := range []string{"version", "--version"} {
		if o := callgate(t, "", word); o.code != 0 || o.stdout != want {
			t.Errorf("%s: %d, got %q, want %q", word, o.code, o.stdout, want)
		}
	}
}
