! A worker in Fortran: one end of a pipe, or both. docs/WORKERS.md describes its arguments and results, README.md its two
! variants.

!> Functions of the C library that Fortran lacks: processes, descriptors, an append mode. (c_size_t also
!> stands for ssize_t: it has the same width, and Fortran's integers are signed.)
module c_library
  use, intrinsic :: iso_c_binding, only: c_char, c_int, c_ptr, c_size_t
  implicit none

  abstract interface
    integer(c_size_t) function transfer_call(descriptor, buffer, bytes) bind(c)
      import :: c_int, c_ptr, c_size_t
      integer(c_int), value :: descriptor
      type(c_ptr), value :: buffer
      integer(c_size_t), value :: bytes
    end function
    type(c_ptr) function opening_call(name, mode) bind(c)
      import :: c_char, c_ptr
      character(kind=c_char), intent(in) :: name(*), mode(*)
    end function
    integer(c_int) function stream_call(stream) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: stream
    end function
  end interface

  procedure(transfer_call), bind(c, name='read') :: c_read
  procedure(transfer_call), bind(c, name='write') :: c_write
  procedure(opening_call), bind(c, name='fopen') :: c_fopen
  procedure(opening_call), bind(c, name='popen') :: c_popen
  procedure(stream_call), bind(c, name='fclose') :: c_fclose
  procedure(stream_call), bind(c, name='pclose') :: c_pclose
  procedure(stream_call), bind(c, name='fileno') :: c_fileno

  interface
    integer(c_int) function c_fputs(text, stream) bind(c, name='fputs')
      import :: c_char, c_int, c_ptr
      character(kind=c_char), intent(in) :: text(*)
      type(c_ptr), value :: stream
    end function
    integer(c_int) function c_pipe(ends) bind(c, name='pipe')
      import :: c_int
      integer(c_int), intent(out) :: ends(2)
    end function
    integer(c_int) function c_close(descriptor) bind(c, name='close')
      import :: c_int
      integer(c_int), value :: descriptor
    end function
    integer(c_int) function c_dup2(old, new) bind(c, name='dup2')
      import :: c_int
      integer(c_int), value :: old, new
    end function
    integer(c_int) function c_fork() bind(c, name='fork')
      import :: c_int
    end function
    integer(c_int) function c_execvp(program, arguments) bind(c, name='execvp')
      import :: c_int, c_ptr
      type(c_ptr), value :: program
      type(c_ptr), intent(in) :: arguments(*)
    end function
    subroutine c_exit(status) bind(c, name='_exit')
      import :: c_int
      integer(c_int), value :: status
    end subroutine
    integer(c_int) function c_waitpid(child, status, options) bind(c, name='waitpid')
      import :: c_int
      integer(c_int), value :: child, options
      integer(c_int), intent(out) :: status
    end function
  end interface
end module c_library

!> The parsed command line, and the procedures that every role needs.
module jobs
  use, intrinsic :: iso_c_binding, only: c_associated, c_loc, c_null_char, c_ptr
  use, intrinsic :: iso_fortran_env, only: error_unit, int8, int64
  use c_library
  implicit none

  integer(int64), parameter :: period = 256
  integer, parameter :: page_bytes = 4096
  integer, parameter :: wrong_arguments = 2
  integer, parameter :: first_of_child = 7 ! the number of the first argument of the child's command
  integer, parameter :: eintr = 4

  type :: job_type
    logical :: tuned
    integer(int64) :: bytes, block, warmup
    character(len=:), allocatable :: result
  end type job_type

contains

  !> Ends the program with one sentence on standard error.
  subroutine fail(status, sentence)
    integer, intent(in) :: status
    character(len=*), intent(in) :: sentence
    write (error_unit, '(2a)') 'worker: ', sentence
    stop status, quiet=.true.
  end subroutine fail

  !> Ends the program after a failed call of the C library, with the text of errno(3).
  subroutine fail_with_errno(what)
    character(len=*), intent(in) :: what
    call perror('worker: '//what)
    stop 1, quiet=.true.
  end subroutine fail_with_errno

  !> Nanoseconds of CLOCK_MONOTONIC, which gfortran's SYSTEM_CLOCK counts if its argument has 64 bits.
  function now_ns() result(count_ns)
    integer(int64) :: count_ns
    call system_clock(count_ns)
  end function now_ns

  function argument(position) result(text)
    integer, intent(in) :: position
    character(len=:), allocatable :: text
    integer :: length
    call get_command_argument(position, length=length)
    allocate (character(len=length) :: text)
    call get_command_argument(position, text)
  end function argument

  function decimal(value) result(text)
    integer(int64), intent(in) :: value
    character(len=:), allocatable :: text
    character(len=20) :: digits
    write (digits, '(i0)') value
    text = trim(digits)
  end function decimal

  !> A buffer of a block and `extra` bytes, which begins at byte `start`. In the tuned variant that is a page boundary, so that
  !> vectors and copies are aligned; in the idiomatic variant it is 1.
  subroutine allocate_buffer(job, block, extra, buffer, start)
    type(job_type), intent(in) :: job
    integer(int64), intent(in) :: block, extra
    integer(int8), allocatable, target, intent(out) :: buffer(:)
    integer(int64), intent(out) :: start
    integer(int64) :: spare
    integer :: status
    spare = extra + merge(page_bytes, 0, job%tuned)
    status = 1
    if (block <= huge(block) - spare) allocate (buffer(block + spare), stat=status)
    if (status /= 0) call fail(1, 'no memory for a block of '//decimal(job%block)//' bytes')
    start = 1
    if (job%tuned) start = 1 + modulo(-transfer(c_loc(buffer), start), int(page_bytes, int64))
  end subroutine allocate_buffer

  !> Appends the line in one write, because the two ends of a pair share the file. Fortran's position='append' only sets the
  !> initial position; the C library's "a" is O_APPEND.
  subroutine append_result(job, line)
    type(job_type), intent(in) :: job
    character(len=*), intent(in) :: line
    type(c_ptr) :: stream
    stream = c_fopen(job%result//c_null_char, 'a'//c_null_char)
    if (.not. c_associated(stream)) call fail_with_errno(job%result)
    if (c_fputs(line//new_line('a')//c_null_char, stream) < 0) call fail_with_errno(job%result)
    if (c_fclose(stream) /= 0) call fail_with_errno(job%result)
  end subroutine append_result
end module jobs

!> Both ends, for both variants: the idiomatic variant uses a unit, the tuned variant a descriptor.
module ends
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_int, c_loc, c_size_t
  use, intrinsic :: iso_fortran_env, only: int8, int64, iostat_end
  use c_library
  use jobs
  implicit none

  integer(c_int), parameter :: standard_input = 0, standard_output = 1

contains

  !> Opens a file as a stream of bytes. The names /dev/stdin and /dev/stdout are used, which are not in the standard, because
  !> units 5 and 6 are for text.
  function stream_unit(path, action) result(unit)
    character(len=*), intent(in) :: path, action
    integer :: unit, status
    character(len=200) :: message
    open (newunit=unit, file=path, access='stream', form='unformatted', action=action, status='old', iostat=status, &
          iomsg=message)
    if (status /= 0) call fail(1, path//': '//trim(message))
  end function stream_unit

  subroutine write_unit(unit, block)
    integer, intent(in) :: unit
    integer(int8), intent(in) :: block(:)
    integer :: status, errno_before
    errno_before = ierrno()
    write (unit, iostat=status) block
    call check_written(status, errno_before)
  end subroutine write_unit

  subroutine flush_unit(unit)
    integer, intent(in) :: unit
    integer :: status, errno_before
    errno_before = ierrno()
    flush (unit, iostat=status)
    call check_written(status, errno_before)
  end subroutine flush_unit

  !> The runtime library of gfortran 12 does not report a failed write of its buffer; only errno(3) shows it.
  subroutine check_written(status, errno_before)
    integer, intent(in) :: status, errno_before
    integer :: errno_after
    errno_after = ierrno()
    if (errno_after == eintr) errno_after = errno_before
    if (status /= 0 .or. errno_after /= errno_before) call fail_with_errno('write')
  end subroutine check_written

  subroutine write_descriptor(descriptor, block)
    integer(c_int), intent(in) :: descriptor
    integer(int8), contiguous, target, intent(in) :: block(:)
    integer(c_size_t) :: done, written
    done = 0
    do while (done < size(block, kind=c_size_t))
      written = c_write(descriptor, c_loc(block(done + 1)), size(block, kind=c_size_t) - done)
      if (written >= 0) then
        done = done + written
      else if (ierrno() /= eintr) then
        call fail_with_errno('write')
      end if
    end do
  end subroutine write_descriptor

  !> Writes both parts of the stream to `target_end`, a unit or a descriptor, and makes the result line.
  subroutine send_stream(job, target_end, line)
    type(job_type), intent(in) :: job
    integer, intent(in) :: target_end
    character(len=:), allocatable, intent(out) :: line
    integer(int8), allocatable, target :: buffer(:)
    integer(int64) :: block, start, i, position, ready_ns, began_ns
    block = min(job%block, max(job%warmup, job%bytes))
    call allocate_buffer(job, block, period, buffer, start)
    do i = 0, block + period - 1
      buffer(start + i) = int(modulo(i + 128, period) - 128, int8) ! the byte's value as an integer with a sign
    end do
    position = 0
    ready_ns = now_ns()
    call send_part(job%warmup)
    began_ns = now_ns()
    call send_part(job%bytes)
    line = 'send bytes='//decimal(position)//' ready_ns='//decimal(ready_ns)//' began_ns='//decimal(began_ns)

  contains

    !> Sends a part of the stream in blocks, of which the last may be shorter.
    subroutine send_part(bytes)
      integer(int64), intent(in) :: bytes
      integer(int64) :: length, first, part_end
      part_end = position + bytes
      do while (position < part_end)
        length = min(block, part_end - position)
        first = start + modulo(position, period)
        if (job%tuned) then
          call write_descriptor(target_end, buffer(first:first + length - 1))
        else
          call write_unit(target_end, buffer(first:first + length - 1))
        end if
        position = position + length
      end do
      if (.not. job%tuned) call flush_unit(target_end)
    end subroutine send_part
  end subroutine send_stream

  subroutine run_send(job)
    type(job_type), intent(in) :: job
    character(len=:), allocatable :: line
    if (job%tuned) call send_stream(job, standard_output, line)
    if (.not. job%tuned) call send_stream(job, stream_unit('/dev/stdout', 'write'), line)
    call append_result(job, line)
  end subroutine run_send

  !> The number of bytes that one READ returned. gfortran reports end-of-file whenever a pipe returns fewer bytes than requested,
  !> so the number is the change of the position; at the real end the position does not change.
  function read_unit(unit, block, position) result(got)
    integer, intent(in) :: unit
    integer(int8), intent(inout) :: block(:)
    integer(int64), intent(inout) :: position
    integer(int64) :: got, before
    integer :: status
    character(len=200) :: message
    before = position
    read (unit, iostat=status, iomsg=message) block
    if (status /= 0 .and. status /= iostat_end) call fail(1, 'read: '//trim(message))
    inquire (unit=unit, pos=position)
    got = position - before
  end function read_unit

  function read_descriptor(descriptor, block) result(got)
    integer(c_int), intent(in) :: descriptor
    integer(int8), contiguous, target, intent(inout) :: block(:)
    integer(int64) :: got
    do
      got = c_read(descriptor, c_loc(block), size(block, kind=c_size_t))
      if (got >= 0) return
      if (ierrno() /= eintr) call fail_with_errno('read')
    end do
  end function read_descriptor

  !> Words of 64 bits, which the compiler vectorises; the remaining bytes one by one.
  function xor_tuned(bytes) result(folded)
    integer(int8), contiguous, target, intent(in) :: bytes(:)
    integer(int8) :: folded
    integer(int64), pointer, contiguous :: words(:)
    integer(int64) :: word_count
    word_count = size(bytes, kind=int64) / 8
    call c_f_pointer(c_loc(bytes), words, [word_count])
    folded = ieor(iparity(transfer(iparity(words), [0_int8])), iparity(bytes(8 * word_count + 1:)))
  end function xor_tuned

  subroutine run_recv(job)
    type(job_type), intent(in) :: job
    integer(int8), allocatable, target :: buffer(:)
    integer(int64) :: start, last, got, position, received, expected, ready_ns, ended_ns
    integer(int8) :: xor
    integer :: unit
    call allocate_buffer(job, job%block, 0_int64, buffer, start)
    last = start + job%block - 1
    if (.not. job%tuned) unit = stream_unit('/dev/stdin', 'read')
    expected = job%warmup + job%bytes
    position = 1
    received = 0
    xor = 0
    ended_ns = -1
    ready_ns = now_ns()
    do
      if (job%tuned) then
        got = read_descriptor(standard_input, buffer(start:last))
        xor = ieor(xor, xor_tuned(buffer(start:start + got - 1)))
      else
        got = read_unit(unit, buffer(start:last), position)
        xor = ieor(xor, iparity(buffer(start:start + got - 1)))
      end if
      received = received + got
      if (ended_ns < 0 .and. (received >= expected .or. got == 0)) ended_ns = now_ns()
      if (got == 0) exit
    end do
    call append_result(job, 'recv bytes='//decimal(received)//' xor='//decimal(modulo(int(xor, int64), period))// &
                       ' ready_ns='//decimal(ready_ns)//' ended_ns='//decimal(ended_ns))
    if (received /= expected) call fail(1, 'received '//decimal(received)//' bytes instead of '//decimal(expected))
  end subroutine run_recv
end module ends

!> A parent and the child that it starts. Both variants wait for the child and return its status as wait(2) does.
module pairs
  use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_int, c_loc, c_null_char, c_null_ptr, c_ptr
  use, intrinsic :: iso_fortran_env, only: int64
  use c_library
  use ends
  use jobs
  implicit none

contains

  !> popen(3) starts the child through a shell; then the pipe is opened again as a Fortran stream.
  subroutine pair_idiomatic(job, line, status)
    type(job_type), intent(in) :: job
    character(len=:), allocatable, intent(out) :: line
    integer(c_int), intent(out) :: status
    type(c_ptr) :: pipe
    character(len=:), allocatable :: command
    integer :: i, unit
    command = 'exec'
    do i = first_of_child, command_argument_count()
      command = command//' '//quoted(argument(i))
    end do
    pipe = c_popen(command//c_null_char, 'w'//c_null_char)
    if (.not. c_associated(pipe)) call fail_with_errno('popen')
    unit = stream_unit('/dev/fd/'//decimal(int(c_fileno(pipe), int64)), 'write')
    call send_stream(job, unit, line)
    close (unit)
    status = c_pclose(pipe)
  end subroutine pair_idiomatic

  !> Quotes a text as one word for the shell.
  function quoted(text) result(word)
    character(len=*), intent(in) :: text
    character(len=:), allocatable :: word
    integer :: i
    word = "'"
    do i = 1, len(text)
      word = word//text(i:i)
      if (text(i:i) == "'") word = word//"\''"
    end do
    word = word//"'"
  end function quoted

  subroutine pair_tuned(job, line, status)
    type(job_type), intent(in) :: job
    character(len=:), allocatable, intent(out) :: line
    integer(c_int), intent(out) :: status
    integer(c_int) :: both(2), child, ignored
    if (c_pipe(both) /= 0) call fail_with_errno('pipe')
    child = c_fork()
    if (child < 0) call fail_with_errno('fork')
    if (child == 0) call become_child(both)
    ignored = c_close(both(1))
    call send_stream(job, both(2), line)
    ignored = c_close(both(2))
    do while (c_waitpid(child, status, 0) /= child)
      if (ierrno() /= eintr) call fail_with_errno('waitpid')
    end do
  end subroutine pair_tuned

  !> In the new process: makes the pipe's reading end standard input, and executes the child's program.
  subroutine become_child(both)
    integer(c_int), intent(in) :: both(2)
    character(kind=c_char, len=:), pointer :: word
    type(c_ptr) :: arguments(command_argument_count() - first_of_child + 2)
    integer(c_int) :: ignored
    integer :: i
    ignored = c_dup2(both(1), standard_input)
    ignored = c_close(both(1))
    ignored = c_close(both(2))
    arguments = c_null_ptr
    do i = first_of_child, command_argument_count()
      allocate (word, source=argument(i)//c_null_char)
      arguments(i - first_of_child + 1) = c_loc(word)
    end do
    ignored = c_execvp(arguments(1), arguments)
    call perror('worker: '//argument(first_of_child))
    call c_exit(127_c_int)
  end subroutine become_child

  subroutine run_pair(job)
    type(job_type), intent(in) :: job
    character(len=:), allocatable :: line
    integer(c_int) :: status
    if (job%tuned) call pair_tuned(job, line, status)
    if (.not. job%tuned) call pair_idiomatic(job, line, status)
    call append_result(job, line)
    if (iand(status, 127) /= 0) call fail(1, 'the child ended by signal '//decimal(int(iand(status, 127), int64)))
    if (status /= 0) call fail(1, 'the child exited with status '//decimal(int(status / 256, int64)))
  end subroutine run_pair
end module pairs

program worker
  use, intrinsic :: iso_fortran_env, only: int64
  use ends
  use jobs
  use pairs
  implicit none

  type(job_type) :: job
  character(len=:), allocatable :: way, role

  if (command_argument_count() < 6) then
    call fail(wrong_arguments, 'expected: idiomatic|tuned send|recv|pair BYTES BLOCK WARMUP RESULT [CHILD...]')
  end if
  way = argument(1)
  role = argument(2)
  if (way /= 'idiomatic' .and. way /= 'tuned') then
    call fail(wrong_arguments, 'the way is "'//way//'", not idiomatic or tuned')
  end if
  job%tuned = way == 'tuned'
  job%bytes = number('BYTES', argument(3), 0_int64)
  job%block = number('BLOCK', argument(4), 1_int64)
  job%warmup = number('WARMUP', argument(5), 0_int64)
  job%result = argument(6)
  if (job%bytes > huge(job%bytes) - job%warmup) then
    call fail(wrong_arguments, 'BYTES and WARMUP together exceed 2^63 - 1')
  end if
  select case (role)
  case ('pair')
    if (command_argument_count() < first_of_child) call fail(wrong_arguments, 'pair needs the command of its child')
    call run_pair(job)
  case ('send', 'recv')
    if (command_argument_count() >= first_of_child) then
      call fail(wrong_arguments, '"'//argument(first_of_child)//'" is an argument too many')
    end if
    if (role == 'send') call run_send(job)
    if (role == 'recv') call run_recv(job)
  case default
    call fail(wrong_arguments, 'the role is "'//role//'", not send, recv or pair')
  end select

contains

  function number(name, text, smallest) result(value)
    character(len=*), intent(in) :: name, text
    integer(int64), intent(in) :: smallest
    integer(int64) :: value, digit
    integer :: i
    logical :: valid
    valid = len(text) > 0
    value = 0
    do i = 1, len(text)
      digit = index('0123456789', text(i:i)) - 1
      valid = valid .and. digit >= 0
      if (valid) valid = value <= (huge(value) - digit) / 10
      if (.not. valid) exit
      value = 10 * value + digit
    end do
    if (.not. valid .or. value < smallest) then
      call fail(wrong_arguments, name//' is "'//text//'", not a whole number from '//decimal(smallest)//' to 2^63 - 1')
    end if
  end function number
end program worker
