package configs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs/secret"
	"github.com/callgate/callgate/internal/testkit/configtest"
)

// placed is the secret of a configuration whose Redis has its password at a
// place.
func placed(t *testing.T, place string) (s secret.Ref, dir string) {
	t.Helper()
	dir = t.TempDir()
	c, err := Load(configtest.Write(t, dir, configtest.With(t, map[string]string{
		"callgate.yaml": "redis: {cluster: {addresses: [\"127.0.0.1:7000\"]}, password: \"" + place + "\"}\n# end\n",
	})))
	if err != nil {
		t.Fatal(err)
	}
	return c.Redis.Password, dir
}

func TestSecretOfTheEnvironment(t *testing.T) {
	s, _ := placed(t, "env:CALLGATE_TEST_SECRET")
	for value, fine := range map[string]bool{"hunter2": true, "": false} {
		t.Setenv("CALLGATE_TEST_SECRET", value)
		found, err := s.Read()
		if found != value || (err == nil) != fine {
			t.Errorf("found %q, %v; expected %q", found, err, value)
		}
	}
	os.Unsetenv("CALLGATE_TEST_SECRET")
	if _, err := s.Read(); err == nil || !strings.Contains(err.Error(), "CALLGATE_TEST_SECRET") {
		t.Errorf("found %v; expected the name of the variable", err)
	}
}

// TestSecretOfAFile reads what stands there at the moment; a relative path starts
// at the configuration's file.
func TestSecretOfAFile(t *testing.T) {
	s, dir := placed(t, "file:redis.secret")
	path := filepath.Join(dir, "redis.secret")
	if _, err := s.Read(); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("found %v; expected the path", err)
	}
	for data, want := range map[string]string{
		"hunter2": "hunter2", "hunter2\n": "hunter2", "hunter2\r\n": "hunter2", " two words \n": " two words ",
		"\n": "", "": "", strings.Repeat("x", 64<<10+1): "",
	} {
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := s.Read()
		if found != want || (err == nil) != (want != "") {
			t.Errorf("found %.20q, %v; expected %q", found, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), path) {
			t.Errorf("found %v; expected the path", err)
		}
	}
}

// TestSecretIsNotPrinted: a configuration holds places, so no way to print it
// shows a secret.
func TestSecretIsNotPrinted(t *testing.T) {
	t.Setenv("CALLGATE_TEST_SECRET", "hunter2")
	s, _ := placed(t, "env:CALLGATE_TEST_SECRET")
	if _, err := s.Read(); err != nil {
		t.Fatal(err)
	}
	for _, how := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if output := fmt.Sprintf(how, s); configtest.Secrets.MatchString(output) {
			t.Errorf("%s prints %s", how, output)
		}
	}
	if s.String() != "env:CALLGATE_TEST_SECRET" || !s.IsSet() {
		t.Errorf("it calls itself %q", s)
	}
	if (secret.Ref{}).IsSet() || (secret.Ref{}).String() != "" {
		t.Error("none is one")
	}
	if _, err := (secret.Ref{}).Read(); err == nil {
		t.Error("none was read")
	}
}
