package app

import (
	"testing"
	"testing/fstest"
)

// TestMemoryLimit: the lowest limit of the groups of the process holds, and else the
// machine's memory.
func TestMemoryLimit(t *testing.T) {
	const gib = 1 << 30
	machine := "MemTotal:        8388608 kB\nMemFree:  1 kB\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  float64 // GiB
		of    string
	}{
		"nothing is known": {nil, 0, ""},
		"no group":         {map[string]string{"proc/meminfo": machine}, 4, "machine"},
		"a container": {map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1073741824\n",
		}, 0.9, "control group"},
		"a container that sees the machine's path": {map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "0::/pods/x\n", "sys/fs/cgroup/memory.max": "1073741824\n",
		}, 0.9, "control group"},
		"the group above has less": {map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "0::/system.slice/callgate.service\n",
			"sys/fs/cgroup/system.slice/callgate.service/memory.max": "2147483648\n", "sys/fs/cgroup/system.slice/memory.max": "1073741824\n",
		}, 0.9, "control group"},
		"no limit": {map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n",
		}, 4, "machine"},
		"version 1": {map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "5:cpu,cpuacct:/a\n4:memory:/a\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1073741824\n",
		}, 0.9, "control group"},
		"version 1 without a limit": {map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 4, "machine"},
		"a group of more than the machine has": {map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "17179869184\n",
		}, 4, "machine"},
		"files of another form": {map[string]string{
			"proc/meminfo": "MemTotal: much\n", "proc/self/cgroup": "\n0:\n0::/../..\n", "sys/fs/cgroup/memory.max": "-1\n",
		}, 0, ""},
	} {
		files := fstest.MapFS{}
		for name, text := range c.files {
			files[name] = &fstest.MapFile{Data: []byte(text)}
		}
		share := c.want
		if limit, of := memoryLimit(files); limit != int64(share*gib) || of != c.of {
			t.Errorf("%s: %d of the %s; expected %d of the %s", name, limit, of, int64(share*gib), c.of)
		}
	}
}
