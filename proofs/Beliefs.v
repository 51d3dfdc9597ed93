(* Beliefs of realistic adversaries.

   The closed form of one group's belief ratio, from the definition: people's
   values are a sequence that a Dirichlet prior makes a Polya urn (that step, an
   integral, is on paper); the counts of the group are published; the adversary
   knows the set B of people. Then: merging two groups never raises the ratio. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra ring.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section ClosedForm.
Variables (R : realFieldType) (I S : finType).
Implicit Types (x y : {ffun I -> S}) (c : S -> nat) (phi : pred S) (B : {set I}).

Definition count x (s : S) : nat := #|[set i | x i == s]|.

(* x has the published counts c, and the known people have the known values. *)
Definition consistent c B y x : bool :=
  [forall s, count x s == c s] && [forall i in B, x i == y i].

Definition permuted (pi : {perm I}) x : {ffun I -> S} := [ffun i => x (pi i)].

Lemma count_permuted pi x s : count (permuted pi x) s = count x s.
Proof.
rewrite /count -(card_imset _ (@perm_inj _ pi)); apply: eq_card => i; rewrite !inE.
apply/imsetP/idP => [[j] | eq_s]; first by rewrite !inE ffunE => eq_s ->.
by exists ((pi^-1)%g i); rewrite ?inE ?ffunE permKV.
Qed.

(* If the order of people says nothing, u's value is that of an unknown person at
   random: p_in = (n_phi - b_phi) / (n - b). *)
Theorem belief_with_the_person (w : {ffun I -> S} -> R) c B y phi u :
    (forall pi x, w (permuted pi x) = w x) -> u \notin B ->
  (#|I| - #|B|)%N%:R * (\sum_(x | consistent c B y x && phi (x u)) w x)
  = (\sum_(s | phi s) c s - #|[set i in B | phi (y i)]|)%N%:R * (\sum_(x | consistent c B y x) w x).
Proof.
move=> exchangeable u_out.
have same v : v \notin B -> \sum_(x | consistent c B y x && phi (x v)) w x
                          = \sum_(x | consistent c B y x && phi (x u)) w x.
  move=> v_out; have inj : injective (permuted (tperm u v)).
    move=> x x' /ffunP eq; apply/ffunP => i.
    by have := eq (tperm u v i); rewrite !ffunE tpermK.
  rewrite (reindex_inj inj) /=; apply: eq_big => [x | x _]; last exact: exchangeable.
  rewrite ffunE tpermR; congr (_ && _); congr (_ && _).
    by apply: eq_forallb => s; rewrite count_permuted.
  apply: eq_forallb_in => i i_in; rewrite ffunE tpermD //.
    by apply: contraNneq u_out => ->.
  by apply: contraNneq v_out => ->.
have unknown : #|~: B| = (#|I| - #|B|)%N by rewrite -(cardsC B) addKn.
rewrite -unknown mulr_natl -sumr_const (eq_bigl [pred v | v \notin B]) => [|v]; last by rewrite !inE.
rewrite -(eq_bigr _ same) /= (exchange_big_dep (consistent c B y)) /=; last by move=> v x _ /andP [].
rewrite mulr_sumr; apply: eq_bigr => x cons.
rewrite sumr_const mulr_natl; congr (_ *+ _).
have /andP [/forallP counts /forallP known] := cons.
have total : (\sum_(s | phi s) c s = #|[set i | phi (x i)]|)%N.
  rewrite (eq_bigr (fun s => count x s)) => [|s _]; last by rewrite (eqP (counts s)).
  rewrite -sum1dep_card (partition_big x phi) //=; apply: eq_bigr => s phi_s.
  rewrite /count -sum1dep_card; apply: eq_bigl => i.
  by case: eqP => [-> | _]; rewrite ?phi_s ?andbT ?andbF.
have -> : [set i in B | phi (y i)] = [set i | phi (x i)] :&: B.
  apply/setP => i; rewrite !inE andbC; case: (boolP (i \in B)) => [i_in | _]; last by rewrite !andbF.
  by rewrite !andbT; have /implyP/(_ i_in)/eqP -> := known i.
rewrite total -(cardsID B [set i | phi (x i)]) addKn; apply: eq_card => i.
by rewrite !inE cons.
Qed.

(* The Polya urn of a Dirichlet prior sigma: s (s+1) ... (s+c-1) for every value. *)
Variable sigma : S -> R.
Definition rising (a : R) (c : nat) : R := \prod_(i < c) (a + i%:R).
Definition polya c : R := \prod_s rising (sigma s) (c s).

Lemma polya_exchangeable pi x : polya (count (permuted pi x)) = polya (count x).
Proof. by apply: eq_bigr => s _; rewrite count_permuted. Qed.

Lemma polya_next c v : polya (fun s => (c s + (s == v))%N) = (sigma v + (c v)%:R) * polya c.
Proof.
rewrite /polya (bigD1 v) //= [in RHS](bigD1 v) //= eqxx addn1 /rising big_ord_recr /=.
rewrite mulrCA mulrA [_ * (sigma v + _)]mulrC; congr (_ * _).
by apply: eq_bigr => s /negbTE ->; rewrite addn0.
Qed.

(* Somebody outside of the table whose value is v, the others having the counts c:
   p_out = (n_phi + sigma_phi) / (n + sigma), whatever else is known of the others. *)
Theorem belief_without_the_person c (known : pred {ffun I -> S}) phi :
    (forall x, known x -> forall s, count x s = c s) ->
  (\sum_s sigma s + (\sum_s c s)%N%:R) *
    (\sum_(x | known x) \sum_(v | phi v) polya (fun s => (count x s + (s == v))%N))
  = (\sum_(s | phi s) sigma s + (\sum_(s | phi s) c s)%N%:R) *
    (\sum_(x | known x) \sum_v polya (fun s => (count x s + (s == v))%N)).
Proof.
move=> counts; rewrite !mulr_sumr; apply: eq_bigr => x /counts count_c.
have next psi : \sum_(v | psi v) polya (fun s => (count x s + (s == v))%N)
    = (\sum_(v | psi v) sigma v + (\sum_(v | psi v) c v)%N%:R) * polya (count x).
  rewrite natr_sum -big_split mulr_suml; apply: eq_bigr => v _.
  by rewrite polya_next count_c.
by rewrite (next phi) (next xpredT); ring.
Qed.

End ClosedForm.

Section Merging.
Variables (R : realFieldType) (sigma sigma_phi eps : R) (b : nat).
Hypotheses (sigma_ge1 : 1 <= sigma) (sigma_phi_gt0 : 0 < sigma_phi) (eps_ge1 : 1 <= eps).

(* A group of n people, f of whom satisfy phi; b are known, none of them with phi. *)
Definition p_in (n f : nat) : R := f%:R / (n%:R - b%:R).
Definition p_out (n f : nat) : R := (f%:R - 1 + sigma_phi) / (n%:R - 1 + sigma).

Definition keeps n f : Prop := f = 0%N \/
  [/\ (f + b < n)%N, p_in n f <= eps * p_out n f & 1 - p_out n f <= eps * (1 - p_in n f)].

(* The two inequalities without fractions; m = n - b, s = sigma + b - 1. *)
Definition first_ok (m f s : R) : Prop := f * (m + s) <= eps * (f - 1 + sigma_phi) * m.
Definition second_ok (m f s : R) : Prop := (s + 1 - sigma_phi) * m <= (m - f) * (eps * s + (eps - 1) * m).

Lemma keeps_ok n f : (0 < f)%N -> (f + b < n)%N ->
  let m := n%:R - b%:R in let s := sigma + b%:R - 1 in
  (p_in n f <= eps * p_out n f <-> first_ok m f%:R s) /\
  (1 - p_out n f <= eps * (1 - p_in n f) <-> second_ok m f%:R s).
Proof.
move=> f_gt0 lt_fn m s.
have m_gt0 : 0 < m by rewrite subr_gt0 ltr_nat (leq_ltn_trans _ lt_fn) // leq_addl.
have s_ge0 : 0 <= s by rewrite /s addrAC addr_ge0 ?ler0n // subr_ge0.
have ms_gt0 : 0 < m + s by rewrite ltr_paddr.
have den : n%:R - 1 + sigma = m + s by rewrite /m /s; ring.
have [m_neq0 ms_neq0] := (lt0r_neq0 m_gt0, lt0r_neq0 ms_gt0).
rewrite /p_in /p_out den -/m; split.
  rewrite ler_pdivr_mulr // [leRHS](_ : _ = eps * (f%:R - 1 + sigma_phi) * m / (m + s)); last by field.
  by rewrite ler_pdivl_mulr.
have -> : 1 - (f%:R - 1 + sigma_phi) / (m + s) = (m + s + 1 - f%:R - sigma_phi) / (m + s).
  by field.
have -> : eps * (1 - f%:R / m) = eps * (m - f%:R) / m by field.
rewrite ler_pdivr_mulr // mulrAC ler_pdivl_mulr // /second_ok.
have -> : ((m + s + 1 - f%:R - sigma_phi) * m <= eps * (m - f%:R) * (m + s))
        = ((s + 1 - sigma_phi) * m <= (m - f%:R) * (eps * s + (eps - 1) * m)); last by [].
by rewrite -subr_ge0 -[RHS]subr_ge0; congr (_ <= _); ring.
Qed.

(* A part with at least the share, and a union at least as large. *)
Lemma pass_on (m f M F s : R) : 0 <= s -> 0 < m -> m <= M -> 1 <= f -> f <= F -> f <= m ->
    F * m <= f * M -> first_ok m f s -> second_ok m f s -> first_ok M F s /\ second_ok M F s.
Proof.
move=> s_ge0 m_gt0 le_mM f_ge1 le_fF le_fm share ok1 ok2.
have M_gt0 := lt_le_trans m_gt0 le_mM.
have f_gt0 : 0 < f := lt_le_trans ltr01 f_ge1.
have F_gt0 := lt_le_trans f_gt0 le_fF.
have e_ge0 : 0 <= eps - 1 by rewrite subr_ge0.
have eps_gt0 : 0 < eps := lt_le_trans ltr01 eps_ge1.
split; last first.
  have br (z : R) : 0 < z -> 0 <= eps * s + (eps - 1) * z.
    by move=> z_gt0; rewrite addr_ge0 ?mulr_ge0 // ltW.
  rewrite /second_ok -(ler_pmul2l m_gt0).
  apply: le_trans (_ : M * ((m - f) * (eps * s + (eps - 1) * m)) <= _).
    by rewrite mulrCA [leRHS]mulrC mulrA ler_pmul2r // mulrC.
  apply: le_trans (_ : M * ((m - f) * (eps * s + (eps - 1) * M)) <= _).
    by rewrite ler_pmul2l // ler_wpmul2l ?subr_ge0 // ler_add2l ler_wpmul2l.
  rewrite mulrA [leRHS]mulrA ler_wpmul2r ?br // mulrBr [leRHS]mulrBr mulrC ler_add2l ler_opp2.
  by rewrite mulrC [leRHS]mulrC.
rewrite /first_ok; case: (lerP 1 sigma_phi) => [ge1 | lt1].
  have part : f * (s - (eps - 1) * m) <= eps * (sigma_phi - 1) * m.
    by rewrite -subr_ge0 [leRHS](_ : _ = eps * (f - 1 + sigma_phi) * m - f * (m + s)) ?subr_ge0 //; ring.
  have r_ge0 : 0 <= eps * (sigma_phi - 1) by rewrite mulr_ge0 ?subr_ge0 // ltW.
  suff whole : F * (s - (eps - 1) * M) <= eps * (sigma_phi - 1) * M.
    by rewrite -subr_ge0 [leRHS](_ : _ = eps * (sigma_phi - 1) * M - F * (s - (eps - 1) * M)) ?subr_ge0 //; ring.
  case: (lerP (s - (eps - 1) * M) 0) => [neg | pos].
    by apply: le_trans (mulr_ge0_le0 (ltW F_gt0) neg) _; rewrite mulr_ge0 // ltW.
  rewrite -(ler_pmul2r m_gt0).
  apply: le_trans (_ : f * M * (s - (eps - 1) * M) <= _).
    by rewrite mulrAC ler_wpmul2r // ltW.
  apply: le_trans (_ : f * M * (s - (eps - 1) * m) <= _).
    apply: ler_wpmul2l; first by rewrite mulr_ge0 // ltW.
    by rewrite ler_sub // ler_wpmul2l.
  by rewrite mulrAC [leRHS]mulrAC ler_wpmul2r // ltW.
have gap_gt0 : 0 < f - 1 + sigma_phi by rewrite ltr_paddl ?subr_ge0.
have Gap_gt0 : 0 < F - 1 + sigma_phi by rewrite ltr_paddl ?subr_ge0 // (le_trans f_ge1).
rewrite -(ler_pmul2r (mulr_gt0 gap_gt0 m_gt0)).
apply: le_trans (_ : f * (F - 1 + sigma_phi) * ((m + s) * M) <= _).
  rewrite [leLHS](_ : _ = F * (f - 1 + sigma_phi) * ((M + s) * m)); last by ring.
  apply: ler_pmul.
  - by rewrite mulr_ge0 // ltW.
  - by rewrite mulr_ge0 ?addr_ge0 // ltW.
  - rewrite -subr_ge0 [leRHS](_ : _ = (1 - sigma_phi) * (F - f)); last by ring.
    by rewrite mulr_ge0 ?subr_ge0 // ltW.
  - rewrite -subr_ge0 [leRHS](_ : _ = s * (M - m)); last by ring.
    by rewrite mulr_ge0 ?subr_ge0.
rewrite [leLHS](_ : _ = f * (m + s) * ((F - 1 + sigma_phi) * M)); last by ring.
rewrite [leRHS](_ : _ = eps * (f - 1 + sigma_phi) * m * ((F - 1 + sigma_phi) * M)); last by ring.
by rewrite ler_pmul2r // mulr_gt0.
Qed.

Lemma keeps_part n f N F : (0 < f)%N -> (f <= F)%N -> (n <= N)%N -> (F + b < N)%N ->
    (F * (n - b) <= f * (N - b))%N -> keeps n f -> keeps N F.
Proof.
move=> f_gt0 le_fF le_nN lt_FN share [f0 | [lt_fn ok1 ok2]]; first by rewrite f0 in f_gt0.
have le_bn : (b <= n)%N by rewrite (leq_trans _ (ltnW lt_fn)) // leq_addl.
have le_bN := leq_trans le_bn le_nN.
have [in1 in2] := keeps_ok f_gt0 lt_fn; have [out1 out2] := keeps_ok (leq_trans f_gt0 le_fF) lt_FN.
have s_ge0 : 0 <= sigma + b%:R - 1 by rewrite addrAC addr_ge0 ?ler0n // subr_ge0.
have [k1 k2] : first_ok (N%:R - b%:R) F%:R (sigma + b%:R - 1) /\ second_ok (N%:R - b%:R) F%:R (sigma + b%:R - 1).
  apply: (@pass_on (n%:R - b%:R) f%:R) s_ge0 _ _ _ _ _ _ _ _.
  - by rewrite subr_gt0 ltr_nat (leq_ltn_trans _ lt_fn) // leq_addl.
  - by rewrite ler_sub // ler_nat.
  - by rewrite ler1n.
  - by rewrite ler_nat.
  - by rewrite ler_subr_addr -natrD ler_nat ltnW.
  - by rewrite -!natrB // -!natrM ler_nat.
  - exact/in1.
  - exact/in2.
by right; split=> //; [apply/out1 | apply/out2].
Qed.

Theorem merging_keeps_the_ratio n1 f1 n2 f2 : (f1 <= n1)%N -> (f2 <= n2)%N ->
  keeps n1 f1 -> keeps n2 f2 -> keeps (n1 + n2) (f1 + f2).
Proof.
move=> le1 le2 keep1 keep2.
case: (posnP f1) => [f1_0 | f1_gt0]; case: (posnP f2) => [f2_0 | f2_gt0].
- by left; rewrite f1_0 f2_0.
- have [f0 | [lt2 _ _]] := keep2; first by rewrite f0 in f2_gt0.
  rewrite f1_0 add0n; apply: (keeps_part f2_gt0 (leqnn _) _ _ _ keep2); rewrite ?leq_addl //.
    by rewrite (leq_trans lt2) ?leq_addl.
  by rewrite leq_mul2l leq_sub2r ?orbT // leq_addl.
- have [f0 | [lt1 _ _]] := keep1; first by rewrite f0 in f1_gt0.
  rewrite f2_0 addn0; apply: (keeps_part f1_gt0 (leqnn _) _ _ _ keep1); rewrite ?leq_addr //.
    by rewrite (leq_trans lt1) ?leq_addr.
  by rewrite leq_mul2l leq_sub2r ?orbT // leq_addr.
have [f0 | [lt1 _ _]] := keep1; first by rewrite f0 in f1_gt0.
have [f0 | [lt2 _ _]] := keep2; first by rewrite f0 in f2_gt0.
have lt12 : (f1 + f2 + b < n1 + n2)%N.
  by rewrite -addnA -addnS leq_add ?le1 // -addSn.
have le_b1 : (b <= n1)%N by rewrite (leq_trans _ (ltnW lt1)) // leq_addl.
have le_b2 : (b <= n2)%N by rewrite (leq_trans _ (ltnW lt2)) // leq_addl.
have larger : (n1 - b + (n2 - b) <= n1 + n2 - b)%N.
  by rewrite addnBAC // leq_sub2r // leq_add2l leq_subr.
case: (leqP (f2 * (n1 - b)) (f1 * (n2 - b))) => [first | /ltnW second].
  apply: (keeps_part f1_gt0 _ _ lt12 _ keep1); rewrite ?leq_addr //.
  by apply: leq_trans (leq_mul (leqnn f1) larger); rewrite mulnDl mulnDr leq_add2l.
apply: (keeps_part f2_gt0 _ _ lt12 _ keep2); rewrite ?leq_addl //.
by apply: leq_trans (leq_mul (leqnn f2) larger); rewrite mulnDl mulnDr leq_add2r.
Qed.

End Merging.
