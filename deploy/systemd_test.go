package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const systemdUnit = "systemd/callgate.service"

// unit are the settings of the unit, each with its values in order.
func unit(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for line := range strings.Lines(text(t, systemdUnit)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(key, "#") {
			all[key] = append(all[key], value)
		}
	}
	return all
}

// TestSystemdConfiguration: the configuration of the packages loads, and permits the call that
// docs/install.md makes.
func TestSystemdConfiguration(t *testing.T) {
	main := absolute(t, "systemd/etc/callgate.yaml")
	loads(t, main)
	if o := callgate(t, "", "policy", "explain", "--config", main, "--agent", "Analyst", "--project", "acme/alpha", "--tool", "time.now"); o.code != 0 {
		t.Errorf("time.now is not permitted: %s%s", o.stdout, o.stderr)
	}
}

func TestSystemdUnit(t *testing.T) {
	u := unit(t)
	read := readYAML[settings](t, "systemd/etc/callgate.yaml")[0]
	command := strings.Fields(strings.Join(u["ExecStart"], " "))
	accepts(t, "ExecStart", command[1:])
	if command[0] != "/usr/bin/callgate" || !slices.Contains(command, "/etc/callgate/callgate.yaml") {
		t.Errorf("starts %q; the packages have /usr/bin/callgate and /etc/callgate", command)
	}
	if len(u["StateDirectory"]) != 1 || read.DataDir != "/var/lib/"+u["StateDirectory"][0] {
		t.Errorf("data_dir is %s, the state directory %q", read.DataDir, u["StateDirectory"])
	}
	stop, err := time.ParseDuration(strings.Join(u["TimeoutStopSec"], ""))
	if drain, e := time.ParseDuration(read.Server.ShutdownTimeout); err != nil || e != nil || stop < drain+5*time.Second {
		t.Errorf("killed after %v; draining takes %s: %v, %v", stop, read.Server.ShutdownTimeout, err, e)
	}
	for key, want := range map[string]string{
		"DynamicUser": "yes", "NoNewPrivileges": "yes", "ProtectSystem": "strict", "ProtectHome": "yes", "PrivateTmp": "yes", "PrivateDevices": "yes",
		"CapabilityBoundingSet": "", "MemoryDenyWriteExecute": "yes", "RestartPreventExitStatus": "2", "LoadCredential": "secrets:/etc/callgate/secrets", "UMask": "0077",
	} {
		if got := u[key]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}

// TestSystemdAnalyze asks systemd itself: it knows every setting, and the unit is exposed less
// than 2.0 of 10.
func TestSystemdAnalyze(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("needs systemd-analyze")
	}
	file := filepath.Join(t.TempDir(), "callgate.service")
	body := strings.Replace(text(t, systemdUnit), "/usr/bin/callgate ", filepath.Join(programs, "callgate")+" ", 1)
	if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"verify", "--man=no", file}, {"security", "--offline=true", "--threshold=20", file}} {
		out, err := exec.CommandContext(t.Context(), "systemd-analyze", args...).CombinedOutput()
		if err != nil || args[0] == "verify" && len(out) > 0 {
			t.Errorf("systemd-analyze %s: %v\n%s", args[0], err, out)
		}
	}
}
