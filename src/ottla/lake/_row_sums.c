/* The inner loops of `row_hash`, which has the specification and the same loops in numpy.

   Arrays come as buffers. Both functions release the interpreter's lock: their caller must not
   change the arrays meanwhile. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define KEYS 4096

/* The loops once more for processors that multiply several 64-bit words at a time; the loader
   picks the form that fits the machine. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && __GNUC__ >= 12
#define FOR_EACH_PROCESSOR __attribute__((target_clones("default", "avx2", "arch=x86-64-v4")))
#else
#define FOR_EACH_PROCESSOR
#endif

static inline uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93ULL;
    return x ^ (x >> 32);
}

/* A word that may stand at any byte, of which `size` bytes are there. */
static inline uint64_t word_at(const unsigned char *place, size_t size)
{
    uint64_t word = 0;
    memcpy(&word, place, size);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* Returns the first string that does not lie in the content, or `count`. */
FOR_EACH_PROCESSOR
static Py_ssize_t sum_strings(const unsigned char *content, Py_ssize_t size, const int64_t *bounds,
                              Py_ssize_t count, const uint64_t *a, const uint64_t *b,
                              uint64_t *sums, uint64_t *weighted)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        int64_t begin = bounds[i], end = bounds[i + 1];
        if (begin < 0 || end < begin || end > size)
            return i;
        const unsigned char *place = content + begin;
        uint64_t whole = (uint64_t)(end - begin) >> 3, rest = (uint64_t)(end - begin) & 7;
        uint64_t s = 0, t = 0, round = 0;
        for (; whole > 0; round++) {
            uint64_t words = whole < KEYS ? whole : KEYS;
            for (uint64_t j = 0; j < words; j++) {
                uint64_t m = mix(word_at(place + 8 * j, 8) ^ (a[j] + round));
                s += m;
                t += m * b[j];
            }
            place += 8 * words;
            whole -= words;
        }
        if (rest) {
            uint64_t index = (uint64_t)(end - begin) >> 3;
            uint64_t m = mix(word_at(place, rest) ^ (a[index % KEYS] + index / KEYS));
            s += m;
            t += m * b[index % KEYS];
        }
        sums[i] = s;
        weighted[i] = t;
    }
    return count;
}

FOR_EACH_PROCESSOR
static void add_words(const uint64_t *words, Py_ssize_t count, uint64_t a, uint64_t b,
                      uint64_t *low, uint64_t *high)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        low[i] = mix(low[i] ^ words[i]) + a;
        high[i] = (high[i] + low[i]) * b;
    }
}

static PyObject *bytes_sums(PyObject *module, PyObject *arguments)
{
    Py_buffer content, bounds, a, b, sums, weighted;
    if (!PyArg_ParseTuple(arguments, "y*y*y*y*w*w*", &content, &bounds, &a, &b, &sums, &weighted))
        return NULL;
    Py_ssize_t count = sums.len / 8, summed = -1;
    if (bounds.len == sums.len + 8 && weighted.len == sums.len && a.len == 8 * KEYS &&
        b.len == 8 * KEYS) {
        Py_BEGIN_ALLOW_THREADS
        summed = sum_strings(content.buf, content.len, bounds.buf, count, a.buf, b.buf, sums.buf,
                             weighted.buf);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&content);
    PyBuffer_Release(&bounds);
    PyBuffer_Release(&a);
    PyBuffer_Release(&b);
    PyBuffer_Release(&sums);
    PyBuffer_Release(&weighted);
    if (summed < 0)
        return PyErr_Format(PyExc_ValueError, "arrays of other lengths are needed");
    if (summed < count)
        return PyErr_Format(PyExc_ValueError, "string %zd is not within the content", summed);
    Py_RETURN_NONE;
}

static PyObject *mix_in(PyObject *module, PyObject *arguments)
{
    Py_buffer words, low, high;
    unsigned long long a, b;
    if (!PyArg_ParseTuple(arguments, "y*KKw*w*", &words, &a, &b, &low, &high))
        return NULL;
    int fits = words.len == low.len && words.len == high.len;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        add_words(words.buf, words.len / 8, a, b, low.buf, high.buf);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&words);
    PyBuffer_Release(&low);
    PyBuffer_Release(&high);
    if (!fits)
        return PyErr_Format(PyExc_ValueError, "arrays of other lengths are needed");
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"bytes_sums", bytes_sums, METH_VARARGS, NULL},
    {"mix_in", mix_in, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_row_sums", NULL, 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__row_sums(void)
{
    return PyModuleDef_Init(&definition);
}
