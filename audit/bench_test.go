package audit

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// 32 writers that share syncs, against the same 32 with a sync for each
// record. The two take turns on one disk, as its speed may vary from second to
// second; the ratio is the median of the turns.
func BenchmarkGroupCommit(b *testing.B) {
	const writers, each = 32, 10
	shared, single := open(b, b.TempDir(), Options{}), open(b, b.TempDir(), Options{batch: 1})
	var ratios, sharedRate, singleRate []float64
	b.ReportAllocs()
	for b.Loop() {
		together, alone := turn(b, shared, writers, each), turn(b, single, writers, each)
		ratios = append(ratios, alone.Seconds()/together.Seconds())
		sharedRate = append(sharedRate, writers*each/together.Seconds())
		singleRate = append(singleRate, writers*each/alone.Seconds())
	}
	b.ReportMetric(median(ratios), "times")
	b.ReportMetric(median(sharedRate), "shared/s")
	b.ReportMetric(median(singleRate), "single/s")
}

// 32 writers to a log that signs heads and moves files aside, against the same
// 32 to one that does neither, in turns on one disk.
func BenchmarkSigned(b *testing.B) {
	const writers, each = 32, 100
	plain := open(b, b.TempDir(), Options{})
	signed := open(b, b.TempDir(), Options{SignKey: testKey(1), RotateBytes: 16 << 20})
	var ratios []float64
	for b.Loop() {
		without, with := turn(b, plain, writers, each), turn(b, signed, writers, each)
		ratios = append(ratios, with.Seconds()/without.Seconds())
	}
	b.ReportMetric(median(ratios), "times")
}

func turn(b *testing.B, l *Log, writers, each int) time.Duration {
	began := time.Now()
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				if err := l.Append(context.Background(), sample("call")); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	return time.Since(began)
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}

func BenchmarkAppend(b *testing.B) {
	for name, ahead := range map[string]bool{"disk": false, "preallocated": true} {
		b.Run(name, func(b *testing.B) {
			l := open(b, b.TempDir(), Options{Preallocate: ahead})
			b.ReportAllocs()
			before := processorTime()
			for b.Loop() {
				if err := l.Append(context.Background(), sample("call")); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((processorTime()-before).Nanoseconds())/float64(b.N), "cpu-ns/record")
		})
	}
}

// 32 callers of a log on disk, and of one in memory: the processor time of a record, from
// its members to its answer.
func BenchmarkAppend32(b *testing.B) {
	const writers = 32
	for name, root := range map[string]string{"disk": "", "preallocated": "", "memory": "/dev/shm"} {
		b.Run(name, func(b *testing.B) {
			dir, err := os.MkdirTemp(root, "audit-")
			if err != nil {
				b.Skip(err)
			}
			defer os.RemoveAll(dir)
			l := open(b, dir, Options{Preallocate: name == "preallocated"})
			r := full()
			r.InputSHA256 = strings.Repeat("a", 64)
			r.ArgumentsSHA256, r.ConfigDigest = r.InputSHA256, r.InputSHA256
			b.ReportAllocs()
			b.ResetTimer()
			before := processorTime()
			var wg sync.WaitGroup
			for range writers {
				wg.Go(func() {
					for range (b.N + writers - 1) / writers {
						if err := l.Append(b.Context(), r); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64((processorTime()-before).Nanoseconds())/float64(b.N), "cpu-ns/record")
		})
	}
}

func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // a failure shows as zero
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkEncode(b *testing.B) {
	r := full()
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		var err error
		if buf, err = appendRecord(buf[:0], &r, Digest); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	name := filepath.Join(b.TempDir(), fileName)
	log := bytes.Join(makeLog(b, 5000), nil)
	put(b, name, log)
	b.SetBytes(int64(len(log)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Verify(name); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRedact(b *testing.B) {
	raw := []byte(`{"query":"AI agent memory issues","num_results":5,"auth":{"key":"hunter2"},"list":[1,2,3,{"a":"b"}]}`)
	secret := pointed("/auth/key")
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Redact(raw, secret); err != nil {
			b.Fatal(err)
		}
	}
}
