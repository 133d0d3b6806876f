/* The inner loops of `row_hash` and of `keyed_hash`, which have the specifications and the same
   loops in numpy, and the one that `columns` gathers keys and values with.

   Arrays come as buffers. The functions release the interpreter's lock: their caller must not
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

static inline uint64_t turned(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

/* SipHash's round, so many times. */
static inline void sip_rounds(uint64_t v[4], int count)
{
    for (int i = 0; i < count; i++) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = turned(v[1], 13) ^ v[0];
        v[3] = turned(v[3], 16) ^ v[2];
        v[0] = turned(v[0], 32) + v[3];
        v[2] += v[1];
        v[3] = turned(v[3], 21) ^ v[0];
        v[1] = turned(v[1], 17) ^ v[2];
        v[2] = turned(v[2], 32);
    }
}

static inline void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_rounds(v, 2);
    v[0] ^= word;
}

/* Returns the first string that does not lie in the content, or `count`. */
static Py_ssize_t sip_strings(const unsigned char *content, Py_ssize_t size, const int64_t *bounds,
                              Py_ssize_t count, const uint64_t state[4], uint64_t *low,
                              uint64_t *high)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        int64_t begin = bounds[i], end = bounds[i + 1];
        if (begin < 0 || end < begin || end > size)
            return i;
        const unsigned char *place = content + begin;
        uint64_t v[4] = {state[0], state[1], state[2], state[3]};
        uint64_t length = (uint64_t)(end - begin);
        for (uint64_t words = length >> 3; words > 0; words--, place += 8)
            sip_word(v, word_at(place, 8));
        sip_word(v, length << 56 | word_at(place, length & 7));
        v[2] ^= 0xEE;
        sip_rounds(v, 4);
        low[i] = v[0] ^ v[1] ^ v[2] ^ v[3];
        v[1] ^= 0xDD;
        sip_rounds(v, 4);
        high[i] = v[0] ^ v[1] ^ v[2] ^ v[3];
    }
    return count;
}

static PyObject *keyed(PyObject *module, PyObject *arguments)
{
    Py_buffer content, bounds, state, low, high;
    if (!PyArg_ParseTuple(arguments, "y*y*y*w*w*", &content, &bounds, &state, &low, &high))
        return NULL;
    Py_ssize_t count = low.len / 8, done = -1;
    if (bounds.len == low.len + 8 && high.len == low.len && state.len == 32) {
        Py_BEGIN_ALLOW_THREADS
        done = sip_strings(content.buf, content.len, bounds.buf, count, state.buf, low.buf,
                           high.buf);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&content);
    PyBuffer_Release(&bounds);
    PyBuffer_Release(&state);
    PyBuffer_Release(&low);
    PyBuffer_Release(&high);
    if (done < 0)
        return PyErr_Format(PyExc_ValueError, "arrays of other lengths are needed");
    if (done < count)
        return PyErr_Format(PyExc_ValueError, "string %zd is not within the content", done);
    Py_RETURN_NONE;
}

/* Copies the strings of the content that begin at `starts` to the target, one after another.
   Returns the first string that does not lie in the content or in the target, or `count`. */
static Py_ssize_t copy_strings(const char *content, Py_ssize_t size, const int64_t *starts,
                               const int32_t *bounds, Py_ssize_t count, char *target,
                               Py_ssize_t room)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        int64_t start = starts[i], begin = bounds[i], length = (int64_t)bounds[i + 1] - begin;
        if (start < 0 || begin < 0 || length < 0 || start > size - length || begin > room - length)
            return i;
        memcpy(target + begin, content + start, (size_t)length);
    }
    return count;
}

static PyObject *gather(PyObject *module, PyObject *arguments)
{
    Py_buffer content, starts, bounds, target;
    if (!PyArg_ParseTuple(arguments, "y*y*y*w*", &content, &starts, &bounds, &target))
        return NULL;
    Py_ssize_t count = starts.len / 8, done = -1;
    if (bounds.len == 4 * (count + 1)) {
        Py_BEGIN_ALLOW_THREADS
        done = copy_strings(content.buf, content.len, starts.buf, bounds.buf, count, target.buf,
                            target.len);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&content);
    PyBuffer_Release(&starts);
    PyBuffer_Release(&bounds);
    PyBuffer_Release(&target);
    if (done < 0)
        return PyErr_Format(PyExc_ValueError, "arrays of other lengths are needed");
    if (done < count)
        return PyErr_Format(PyExc_ValueError, "string %zd is not within the content", done);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"bytes_sums", bytes_sums, METH_VARARGS, NULL},
    {"gather", gather, METH_VARARGS, NULL},
    {"keyed", keyed, METH_VARARGS, NULL},
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
