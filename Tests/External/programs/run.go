// Goroutines that collect, a panic that is recovered, one that is not: it ends with status 2.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strings"
	"sync"
)

func fibonacci(n int) int {
	if n < 2 {
		return n
	}
	return fibonacci(n-1) + fibonacci(n-2)
}

func work(n int) (sum int) {
	defer func() { recover() }()
	texts := map[string]int{}
	for i := 0; i < 1000; i++ {
		texts[fmt.Sprint("key", i)] = i
		if i%250 == 0 {
			runtime.GC()
		}
	}
	keys := []string{}
	for key := range texts {
		keys = append(keys, key)
	}
	sort.Slice(keys, func(a, b int) bool { return keys[a] < keys[b] })
	sum = len(strings.Join(keys, "")) + fibonacci(15+n)
	var none []int
	return none[n]
}

func main() {
	var group sync.WaitGroup
	results := make([]int, 8)
	for i := range results {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			results[i] = work(i)
		}(i)
	}
	group.Wait()
	fmt.Println(results)
	os.Stdout.Sync()
	panic("the end")
}
