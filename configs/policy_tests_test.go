package configs

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/configtest"
	"github.com/callgate/callgate/policy"
)

// exampleFiles are the files of the example, with its tests switched on.
func exampleFiles(t *testing.T) map[string]configtest.File {
	t.Helper()
	files := map[string]configtest.File{}
	for _, name := range []string{"callgate.yaml", "policy.csv", "policy_test.yaml", "workspaces.yaml", "limits.yaml", "tools/demo.yaml"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = configtest.File{Data: strings.Replace(string(data), "\n#tests: ", "\ntests: ", 1)}
	}
	return files
}

// TestExampleByItsTests loads the example with the key tests, and without each of its rows: some
// test then fails, and nothing is loaded.
func TestExampleByItsTests(t *testing.T) {
	files := exampleFiles(t)
	c := loads(t, files)
	if len(c.TestFiles) != 1 {
		t.Fatalf("found the tests %q", c.TestFiles)
	}
	rows := strings.Split(files["policy.csv"].Data, "\n")
	for i, row := range rows {
		if !strings.HasPrefix(row, "p,") && !strings.HasPrefix(row, "g,") {
			continue
		}
		without := append(append([]string{}, rows[:i]...), rows[i+1:]...)
		files["policy.csv"] = configtest.File{Data: strings.Join(without, "\n")}
		main := configtest.Write(t, t.TempDir(), files)
		if _, err := Load(main); err == nil || !strings.Contains(err.Error(), "policy_test.yaml:") {
			t.Errorf("without the row %q: found %v", row, err)
		}
		other := policy.Source{File: "other.csv", Data: []byte(files["policy.csv"].Data)}
		if _, err := LoadWithPolicy(configtest.Write(t, t.TempDir(), exampleFiles(t)), other); err != nil {
			t.Errorf("without the row %q, and to be compared: %v", row, err)
		}
		untested, err := LoadUntested(main)
		if err != nil {
			t.Errorf("without the row %q, and untested: %v", row, err)
			continue
		}
		if found, err := untested.FindTests(); err != nil || len(found) != 1 || filepath.Base(found[0]) != "policy_test.yaml" {
			t.Errorf("found the files %q, %v", found, err)
		}
	}
}

// TestUntestedDigest: what is loaded without its tests has the digest that it has with them.
func TestUntestedDigest(t *testing.T) {
	main := configtest.Write(t, t.TempDir(), exampleFiles(t))
	tested, err := Load(main)
	if err != nil {
		t.Fatal(err)
	}
	untested, err := LoadUntested(main)
	if err != nil || tested.Digest != untested.Digest {
		t.Errorf("found %v, and the digests %s and %s", err, tested.Digest, untested.Digest)
	}
}

// TestTestsWithoutEnd: tests that do not end in time are a fault.
func TestTestsWithoutEnd(t *testing.T) {
	c, err := Load(configtest.Write(t, t.TempDir(), exampleFiles(t)))
	if err != nil {
		t.Fatal(err)
	}
	found, err := c.FindTests()
	if err != nil {
		t.Fatal(err)
	}
	by, tests, err := c.ReadTests(found)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := &loader{}
	l.addFailures(ctx, by, tests)
	if err := l.report.Err(); err == nil || !strings.Contains(err.Error(), "the tests of the policy did not end (context canceled); expected that they end within 30s") {
		t.Errorf("found %v", err)
	}
}
