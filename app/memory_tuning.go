package app

import (
	"bufio"
	"bytes"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/store/boltstore"
)

// gcPercent lets the heap grow to five times what lives in it before it is collected. A
// gateway keeps little and allocates much, so the runtime's own 100 would collect several times
// as often.
const gcPercent = 400

// The shares of memory that the Go runtime may use: of the control group's, which is ours but
// for pages of files, and of a machine's, which others use too.
const (
	controlGroupShare = 0.9
	machineShare      = 0.5
)

// TuneMemory sets how the runtime collects garbage, for the whole process, unless the environment says it
// (GOGC, GOMEMLIMIT). A gateway calls it before it loads its configuration, which allocates many times what
// is kept of it.
func TuneMemory(logger *slog.Logger) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if limit, of := memoryLimit(os.DirFS("/")); limit > 0 {
		limit -= min(boltstore.HandedBytes, limit/2) // which the runtime does not count
		debug.SetMemoryLimit(limit)
		logger.Debug("memory limit set", "bytes", limit, "of", of)
	}
}

// memoryLimit returns how many bytes the runtime may use, and whose share that is; 0 where
// that is not known.
func memoryLimit(root fs.FS) (limit int64, of string) {
	machine, group := machineMemory(root), controlGroupMemory(root)
	switch {
	case group < math.MaxInt64 && group <= machine:
		return int64(controlGroupShare * float64(group)), "control group"
	case machine < math.MaxInt64:
		return int64(machineShare * float64(machine)), "machine"
	}
	return 0, ""
}

// machineMemory returns the memory of a Linux machine, or math.MaxInt64.
func machineMemory(root fs.FS) int64 {
	data, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return math.MaxInt64
	}
	_, rest, _ := strings.Cut(string(data), "MemTotal:")
	line, _, _ := strings.Cut(rest, "\n")
	kilobytes, ok := strings.CutSuffix(strings.TrimSpace(line), " kB")
	n, err := strconv.ParseInt(kilobytes, 10, 64)
	if !ok || err != nil || n <= 0 || n > math.MaxInt64>>10 {
		return math.MaxInt64
	}
	return n << 10
}

// controlGroupMemory returns the lowest limit of the control groups (cgroups(7), versions 1 and
// 2) that the process is in, or math.MaxInt64. Within a container the path of a group may be
// the machine's, and then only its root is there.
func controlGroupMemory(root fs.FS) int64 {
	lowest := int64(math.MaxInt64)
	data, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return lowest
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		parts := strings.SplitN(lines.Text(), ":", 3) // hierarchy:controllers:path
		if len(parts) != 3 {
			continue
		}
		mount, file := "sys/fs/cgroup", "memory.max"
		if parts[1] != "" {
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
			if !slices.Contains(strings.Split(parts[1], ","), "memory") {
				continue
			}
		}
		for group := path.Clean("/" + parts[2]); ; group = path.Dir(group) {
			if text, err := fs.ReadFile(root, path.Join(mount, group, file)); err == nil {
				// "max" is no number, and no limit.
				if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
					lowest = min(lowest, n)
				}
			}
			if group == "/" {
				break
			}
		}
	}
	return lowest
}
